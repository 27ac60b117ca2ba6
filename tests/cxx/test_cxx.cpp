/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbatim.hpp over real connections on this host: what moves, what throws, what ends how. What the calls themselves do is
 * the conformance suite's matter. Speaks TAP.
 */
#include <cstdio>
#include <cstring>
#include <fstream>
#include <future>
#include <poll.h>
#include <string>
#include <type_traits>
#include <unistd.h>
#include <verbatim/verbatim.hpp>

namespace
{

#define CHECK(condition)                                                    \
	do {                                                                \
		if (!(condition))                                           \
			throw std::runtime_error(std::to_string(__LINE__) + \
						 ": not so: " #condition);  \
	} while (0)

vb_options ofi()
{
	vb_options options = {};

	options.fabric = VB_FABRIC_OFI;
	options.listener_is_up = true;
	return options;
}

const char *const localhost = "127.0.0.1";

/* Runs beside the test, as the peer; get() brings its exception here. */
template <class Work> auto beside(Work work)
{
	return std::async(std::launch::async, std::move(work));
}

template <class Call> vb_err thrown_by(Call call)
{
	try {
		call();
	} catch (const vb::error &error) {
		return error.code();
	}
	return VB_OK;
}

struct pair {
	vb::channel here, there;
};

pair connected()
{
	vb::listener listener(localhost, "0", ofi());
	auto there = beside([port = std::to_string(listener.port())] {
		return vb::channel(localhost, port.c_str(), ofi());
	});
	vb::channel here = listener.accept();

	return { std::move(here), there.get() };
}

void await(int fd)
{
	pollfd descriptor = { fd, POLLIN, 0 };

	CHECK(poll(&descriptor, 1, 10000) == 1);
}

/* ---- Tests ---- */

template <class Object> constexpr bool owns()
{
	return std::is_nothrow_move_constructible_v<Object> &&
	       std::is_nothrow_move_assignable_v<Object> && !std::is_copy_constructible_v<Object> &&
	       !std::is_copy_assignable_v<Object>;
}

/* They own what the pointer of the C calls stands for, and hold nothing besides it. */
template <class... Objects> constexpr bool are_pointers()
{
	return (owns<Objects>() && ...) && ((sizeof(Objects) == sizeof(void *)) && ...);
}

static_assert(are_pointers<vb::channel, vb::listener, vb::region, vb::grant, vb::stream,
			   vb::stream_server, vb::server, vb::door, vb::session>());
static_assert(sizeof(vb::channel_ref) == sizeof(void *));
static_assert(std::is_trivially_copyable_v<vb::channel_ref>);
static_assert(std::is_nothrow_copy_constructible_v<vb::error>);

void an_error_tells_the_whole_story()
{
	std::string port = std::to_string(vb::listener(localhost, "0", ofi()).port());

	try {
		vb::channel nobody(localhost, port.c_str(), ofi());
	} catch (const std::runtime_error &caught) {
		const vb::error &error = dynamic_cast<const vb::error &>(caught);
		char line[VB_ERROR_LINE_MAX];

		CHECK(error.code() == VB_ERR_REFUSED);
		CHECK(error.get().code == VB_ERR_REFUSED);
		CHECK(std::strstr(error.get().object, port.c_str()));
		CHECK(error.what() ==
		      std::string(vb_error_format(&error.get(), line, sizeof(line))));
		return;
	}
	CHECK(!"connected to nobody");
}

void messages_arrive_and_then_the_end()
{
	pair channels = connected();
	auto peer = beside([&] {
		channels.there.send("hello");
		channels.there.send("");
		channels.there.close();
	});

	CHECK(channels.here.recv() == "hello");
	CHECK(channels.here.recv() == "");
	CHECK(channels.here.recv() == std::nullopt);
	channels.here.close();
	peer.get();
}

void a_message_that_is_too_big_is_thrown_and_no_more()
{
	pair channels = connected();
	std::string big(channels.here.max_message() + 1, 'x');

	CHECK(thrown_by([&] { channels.here.send(big); }) == VB_ERR_TOO_BIG);
	channels.here.send("fits");
	CHECK(channels.there.recv() == "fits");
}

void a_moved_channel_goes_on()
{
	pair channels = connected();
	vb::channel moved(std::move(channels.here));

	CHECK(!channels.here.get());
	channels.here = std::move(moved);
	CHECK(!moved.get() && channels.here.get());
	channels.here.send("still here");
	CHECK(channels.there.recv() == "still here");
}

void a_channel_that_is_replaced_is_lost_to_its_peer()
{
	pair old = connected(), young = connected();

	old.here = std::move(young.here);
	CHECK(thrown_by([&] { old.there.recv(); }) == VB_ERR_LOST);
	old.here.send("the other one");
	CHECK(young.there.recv() == "the other one");
}

void what_an_exception_cuts_off_is_no_good_end()
{
	pair channels = connected();

	try {
		vb::channel cut = std::move(channels.here);

		cut.send("half of it");
		throw std::runtime_error("something else");
	} catch (const std::runtime_error &) {
	}
	CHECK(thrown_by([&] {
		      while (channels.there.recv())
			      ;
	      }) == VB_ERR_LOST);
}

void event_loops_are_told_to_wait()
{
	vb::listener listener(localhost, "0", ofi());
	std::optional<vb::channel> accepted = listener.try_accept();
	std::string_view message;
	vb::attempt result;

	CHECK(!accepted);
	auto peer = beside([port = std::to_string(listener.port())] {
		vb::channel channel(localhost, port.c_str(), ofi());

		CHECK(channel.recv() == "go");
		CHECK(channel.try_send("gone"));
		channel.close();
	});
	while (!(accepted = listener.try_accept()))
		await(listener.fd());
	CHECK(accepted->try_recv(message) == vb::attempt::again);
	CHECK(accepted->try_send("go"));
	while ((result = accepted->try_recv(message)) == vb::attempt::again)
		await(accepted->fd());
	CHECK(result == vb::attempt::done && message == "gone");
	while ((result = accepted->try_recv(message)) == vb::attempt::again)
		await(accepted->fd());
	CHECK(result == vb::attempt::end);
	while (!accepted->try_close())
		await(accepted->fd());
	peer.get();
}

void memory_is_lent_and_taken_back()
{
	pair channels = connected();
	vb::region region(channels.here, 4096);
	vb::grant grant = region.grant(0, 64, VB_RIGHT_READ | VB_RIGHT_WRITE), moved;
	vb_token token = grant.token();
	char back[6] = "";

	CHECK(region.size() == 4096);
	CHECK(vb::read_token(token).len == 64);
	channels.there.put(token, 8, "hello", 5);
	channels.there.get(token, 8, back, 5);
	CHECK(back == std::string("hello"));
	channels.there.put_notify(token, 16, "world", 5, 42);
	CHECK(channels.here.notice() == 42u);
	CHECK(!std::memcmp(static_cast<char *>(region.addr()) + 16, "world", 5));

	moved = std::move(grant);
	channels.there.put(token, 0, "still", 5);
	moved.revoke();
	CHECK(thrown_by([&] { channels.there.put(token, 60, "beyond", 6); }) ==
	      VB_ERR_REMOTE_ACCESS);
	CHECK(thrown_by([&] { channels.there.put(token, 0, "gone", 4); }) != VB_OK);
}

void what_a_fabric_cannot_do_is_thrown()
{
	pair channels = connected();
	vb::region region(channels.here, 8);

	CHECK(thrown_by([&] { region.grant(0, 8, VB_RIGHT_ATOMIC); }) == VB_ERR_UNSUPPORTED);
}

vb_stream_options stream_options()
{
	vb_stream_options options = {};

	options.connection = ofi();
	return options;
}

void a_stream_ends_with_a_short_read()
{
	vb::stream_server server(localhost, "0", stream_options());
	auto peer = beside([port = std::to_string(server.port())] {
		vb::stream stream(localhost, port.c_str(), stream_options());
		char answer[3];

		stream.write("question");
		CHECK(stream.read(answer, 3) == 3 && std::string_view(answer, 3) == "yes");
		stream.write("more");
		stream.close();
	});
	vb::stream accepted = server.accept(), stream = std::move(accepted);
	char heard[8];

	CHECK(stream.read(heard, 8) == 8 && std::string_view(heard, 8) == "question");
	CHECK(!stream.try_read(heard, 8));
	stream.write("yes");
	stream.flush();
	CHECK(stream.read(heard, 8) == 4 && std::string_view(heard, 4) == "more");
	CHECK(stream.read(heard, 8) == 0);
	CHECK(stream.try_read(heard, 8) == 0u);
	stream.close();
	peer.get();
}

void a_stream_that_is_not_closed_is_lost_to_its_peer()
{
	vb::stream_server server(localhost, "0", stream_options());
	auto peer = beside([port = std::to_string(server.port())] {
		return vb::stream(localhost, port.c_str(), stream_options());
	});
	vb::stream stream = server.accept();
	char byte;

	peer.get().write("half of it");
	CHECK(thrown_by([&] {
		      while (stream.read(&byte, 1))
			      ;
	      }) == VB_ERR_LOST);
}

void a_server_hears_of_all_its_clients()
{
	vb_server_options options = {};
	vb_server_event event;

	options.connection = ofi();
	vb::server server(localhost, "0", options);
	auto client = beside([port = std::to_string(server.port())] {
		vb::channel channel(localhost, port.c_str(), ofi());

		channel.send("question");
		CHECK(channel.recv() == "answer");
		channel.close();
	});

	CHECK(server.wait(event) && event.kind == VB_CLIENT_JOINED && server.clients() == 1);
	CHECK(server.wait(event) && event.kind == VB_CLIENT_MESSAGE);
	CHECK(std::string_view(static_cast<const char *>(event.message), event.len) == "question");
	vb::channel_ref(event.client).send("answer");
	CHECK(server.wait(event) && event.kind == VB_CLIENT_LEFT && event.why.code == VB_ERR_EOF);
	CHECK(!server.wait(event, 0));
	client.get();
}

void a_file_is_transferred()
{
	std::string name = "/tmp/verbatim-cxx-" + std::to_string(getpid()), copy = name + ".copy";
	vb_transfer_options options = {};
	vb_input input = {};
	vb_output output = {};

	options.connection = ofi();
	options.key = "key";
	options.key_bytes = 3;
	input.path = name.c_str();
	output.path = copy.c_str();
	std::ofstream(name) << "Hello RDMA!";

	vb::door door(localhost, "0", options);
	auto sent = beside([&, port = std::to_string(door.port())] {
		return vb::session(localhost, port.c_str(), options).send(input);
	});
	vb_report report = door.wait().receive(output);

	CHECK(report.bytes == 11 && sent.get().digest == report.digest);
	unlink(name.c_str());
	unlink(copy.c_str());
}

struct test {
	const char *name;
	void (*run)();
};

test named(const char *name, void (*run)())
{
	return { name, run };
}

#define TEST(name) named(#name, name)

const test tests[] = {
	TEST(an_error_tells_the_whole_story),
	TEST(messages_arrive_and_then_the_end),
	TEST(a_message_that_is_too_big_is_thrown_and_no_more),
	TEST(a_moved_channel_goes_on),
	TEST(a_channel_that_is_replaced_is_lost_to_its_peer),
	TEST(what_an_exception_cuts_off_is_no_good_end),
	TEST(event_loops_are_told_to_wait),
	TEST(memory_is_lent_and_taken_back),
	TEST(what_a_fabric_cannot_do_is_thrown),
	TEST(a_stream_ends_with_a_short_read),
	TEST(a_stream_that_is_not_closed_is_lost_to_its_peer),
	TEST(a_server_hears_of_all_its_clients),
	TEST(a_file_is_transferred),
};

} // namespace

int main()
{
	int number = 0, failed = 0;

	std::printf("1..%zu\n", std::size(tests));
	for (const auto &test : tests) {
		try {
			test.run();
			std::printf("ok %d - %s\n", ++number, test.name);
		} catch (const std::exception &error) {
			std::printf("# %s\nnot ok %d - %s\n", error.what(), ++number, test.name);
			failed = 1;
		}
	}
	return failed;
}
