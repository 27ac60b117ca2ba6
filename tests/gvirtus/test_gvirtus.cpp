/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GVirtuS communicator between two processes, loaded and called as GVirtuS does it. Speaks TAP.
 *
 *	test_gvirtus LIBRARY ADDRESS CALLS
 *
 * The library is this process' as well, but only its children open anything: both ends are made here, by the constructor,
 * and used after a fork.
 */
#include <arpa/inet.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gvirtus/communicators/Communicator.h>
#include <gvirtus/communicators/Endpoint_Tcp.h>

namespace
{

using gvirtus::communicators::Communicator;
using gvirtus::communicators::Endpoint;
using gvirtus::communicators::Endpoint_Tcp;
using create_t = std::shared_ptr<Communicator>(std::shared_ptr<Endpoint>);

#define CHECK(condition)                                                    \
	do {                                                                \
		if (!(condition))                                           \
			throw std::runtime_error(std::to_string(__LINE__) + \
						 ": not so: " #condition);  \
	} while (0)

create_t *create_communicator;
const char *address;
int calls;

/* ---- Processes ---- */

std::uint16_t free_port()
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	sockaddr_in name = {};
	socklen_t len = sizeof(name);

	name.sin_family = AF_INET;
	CHECK(bind(fd, reinterpret_cast<sockaddr *>(&name), len) == 0);
	CHECK(getsockname(fd, reinterpret_cast<sockaddr *>(&name), &len) == 0);
	close(fd);
	return ntohs(name.sin_port);
}

using part = void(Communicator &);

pid_t start(part *run, Communicator &communicator)
{
	pid_t child;

	std::fflush(stdout);
	child = fork();
	if (child != 0)
		return child;
	try {
		run(communicator);
	} catch (const std::exception &error) {
		std::printf("# %s\n", error.what());
		std::fflush(stdout);
		_exit(1);
	}
	_exit(0);
}

int status_of(pid_t child)
{
	int status = -1;

	CHECK(waitpid(child, &status, 0) == child);
	return status;
}

Communicator *accept_one(Communicator &server)
{
	const Communicator *client = nullptr;

	server.Serve();
	while (!client)
		client = server.Accept();
	return const_cast<Communicator *>(client);
}

/* One process serves, another connects to it. The one that is meant to be killed is, and the other ends well. */
void run_pair(part *serve, part *use, part *killed = nullptr)
{
	auto endpoint = std::make_shared<Endpoint_Tcp>(address, free_port());
	std::shared_ptr<Communicator> server = create_communicator(endpoint);
	std::shared_ptr<Communicator> client = create_communicator(endpoint);
	pid_t serving = start(serve, *server), using_it = start(use, *client);
	int served = status_of(serving), used = status_of(using_it);

	CHECK(served == (killed == serve ? SIGKILL : 0));
	CHECK(used == (killed == use ? SIGKILL : 0));
}

/* ---- Remote procedure calls, as GVirtuS makes them ---- */

void send_request(Communicator &c, const char *routine, const std::string &body)
{
	size_t len = body.size();

	CHECK(c.Write(routine, std::strlen(routine) + 1) == std::strlen(routine) + 1);
	CHECK(c.Write(reinterpret_cast<char *>(&len), sizeof(len)) == sizeof(len));
	CHECK(c.Write(body.data(), len) == len);
	c.Sync();
}

bool read_name(Communicator &c, std::string &name)
{
	char letter;

	name.clear();
	while (c.Read(&letter, 1) == 1) {
		if (!letter)
			return true;
		name += letter;
	}
	return false;
}

std::string read_body(Communicator &c)
{
	size_t len;
	std::string body;

	CHECK(c.Read(reinterpret_cast<char *>(&len), sizeof(len)) == sizeof(len));
	body.resize(len);
	CHECK(c.Read(body.data(), len) == len);
	return body;
}

void send_reply(Communicator &c, int exit_code, const std::string &body)
{
	double seconds = 0.5;
	size_t len = body.size();

	c.Write(reinterpret_cast<char *>(&exit_code), sizeof(exit_code));
	c.Write(reinterpret_cast<char *>(&seconds), sizeof(seconds));
	c.Write(reinterpret_cast<char *>(&len), sizeof(len));
	c.Write(body.data(), len);
	c.Sync();
}

std::string read_reply(Communicator &c)
{
	int exit_code;
	double seconds;

	CHECK(c.Read(reinterpret_cast<char *>(&exit_code), sizeof(exit_code)) == sizeof(exit_code));
	CHECK(c.Read(reinterpret_cast<char *>(&seconds), sizeof(seconds)) == sizeof(seconds));
	CHECK(exit_code == 7 && seconds == 0.5);
	return read_body(c);
}

/* Answers "echo" with its body, and nothing else. */
void serve_calls(Communicator &server)
{
	std::unique_ptr<Communicator> client(accept_one(server));
	std::string routine;

	while (read_name(*client, routine)) {
		std::string body = read_body(*client);

		if (routine == "echo")
			send_reply(*client, 7, body);
	}
	client->Close();
}

/* ---- Tests ---- */

void make_many_calls(Communicator &c)
{
	timespec began, ended;

	c.Connect();
	clock_gettime(CLOCK_MONOTONIC, &began);
	for (int i = 0; i < calls; i++) {
		std::string body = std::to_string(i);

		body.resize(body.size() + static_cast<size_t>(i) % 200, '.');
		send_request(c, "echo", body);
		CHECK(read_reply(c) == body);
	}
	clock_gettime(CLOCK_MONOTONIC, &ended);
	std::printf("# %.1f us for each call\n",
		    (static_cast<double>(ended.tv_sec - began.tv_sec) * 1e6 +
		     static_cast<double>(ended.tv_nsec - began.tv_nsec) / 1e3) /
			    calls);
	std::fflush(stdout);
	c.Close();
}

void many_calls_are_answered()
{
	run_pair(serve_calls, make_many_calls);
}

void make_large_calls(Communicator &c)
{
	c.Connect();
	for (size_t len : { 1u << 16, 1u << 20, (32u << 20) + 1 }) {
		std::string body(len, '\0');

		for (size_t i = 0; i < len; i++)
			body[i] = static_cast<char>(i * 2654435761u >> 16);
		send_request(c, "echo", body);
		CHECK(read_reply(c) == body);
	}
	c.Close();
}

void large_bodies_arrive_as_they_are()
{
	run_pair(serve_calls, make_large_calls);
}

void leave_unanswered_calls(Communicator &c)
{
	c.Connect();
	for (int i = 0; i < 1000; i++)
		send_request(c, "note", "no answer is expected");
	c.Close();
}

void count_unanswered_calls(Communicator &server)
{
	std::unique_ptr<Communicator> client(accept_one(server));
	std::string routine;
	int count = 0;

	for (; read_name(*client, routine); count++)
		CHECK(read_body(*client) == "no answer is expected");
	CHECK(count == 1000);
}

void calls_without_an_answer_all_arrive()
{
	run_pair(count_unanswered_calls, leave_unanswered_calls);
}

/* The first thing of a request, then nothing more. */
void read_and_die(Communicator &server)
{
	std::string routine;

	read_name(*accept_one(server), routine);
	raise(SIGKILL);
}

void meet_a_dead_server(Communicator &c)
{
	char reply = 'x';

	c.Connect();
	send_request(c, "echo", "anybody there?");
	CHECK(c.Read(&reply, 1) == 0);
	CHECK(c.Read(&reply, 1) == 0);
	CHECK(c.Write(&reply, 1) <= 1);
	c.Sync();
	c.Close();
}

void a_backend_that_is_killed_ends_the_read()
{
	run_pair(read_and_die, meet_a_dead_server, read_and_die);
}

void announce_and_die(Communicator &c)
{
	size_t len = 1000;

	c.Connect();
	c.Write("echo", 5);
	c.Write(reinterpret_cast<char *>(&len), sizeof(len));
	c.Sync();
	c.Write("only the beginning", 18);
	c.Sync();
	raise(SIGKILL);
}

void meet_a_dead_client(Communicator &server)
{
	std::unique_ptr<Communicator> client(accept_one(server));
	std::vector<char> body(1000);
	std::string routine;

	/* What was sent just before the end may be lost with it. */
	if (read_name(*client, routine))
		client->Read(body.data(), sizeof(size_t));
	CHECK(client->Read(body.data(), body.size()) == 0);
}

void a_frontend_that_is_killed_ends_the_read()
{
	run_pair(meet_a_dead_client, announce_and_die, announce_and_die);
}

/* ---- As GVirtuS' backend does it: each client in a thread, which nobody closes or deletes ---- */

constexpr int frontends = 12;

long open_descriptors()
{
	using entries = std::filesystem::directory_iterator;

	return std::distance(entries("/proc/self/fd"), entries());
}

void serve_and_forget(Communicator &server)
{
	long at_first = 0;

	server.Serve();
	for (int i = 0; i < frontends; i++) {
		const Communicator *client = nullptr;

		while (!client)
			client = server.Accept();
		std::thread([&] {
			std::string routine;

			while (read_name(const_cast<Communicator &>(*client), routine))
				;
		}).join();
		if (i == 1)
			at_first = open_descriptors();
	}
	CHECK(open_descriptors() <= at_first);
}

void come_and_go(Communicator &c)
{
	for (int i = 0; i < frontends; i++) {
		c.Connect();
		CHECK(c.Write("note", 5) == 5);
		c.Close();
	}
}

void frontends_that_have_left_leave_nothing_behind()
{
	run_pair(serve_and_forget, come_and_go);
}

void do_nothing_in_particular(Communicator &c)
{
	c.Connect();
	CHECK(c.Write("", 0) == 0);
	CHECK(c.Read(nullptr, 0) == 0);
	c.Sync();
	c.Close();
	c.Close();
	CHECK(c.Read(nullptr, 0) == 0);
}

void nothing_is_done_for_no_bytes()
{
	run_pair(serve_calls, do_nothing_in_particular);
}

void without_a_connection_there_is_nothing_to_read()
{
	auto c = create_communicator(std::make_shared<Endpoint_Tcp>(address, free_port()));
	char byte = 'x';

	CHECK(c->Read(&byte, 1) == 0);
	CHECK(c->Write(&byte, 1) == 0);
	c->Sync();
	c->Close();
	CHECK(c->to_string() == "tcpcommunicator");
}

template <class Call> std::string thrown_by(Call call)
{
	try {
		call();
	} catch (const std::runtime_error &error) {
		return error.what();
	}
	return "";
}

void fail_at_the_start(Communicator &)
{
	std::uint16_t port = free_port();
	auto first = create_communicator(std::make_shared<Endpoint_Tcp>(address, port));
	auto second = create_communicator(std::make_shared<Endpoint_Tcp>(address, port));
	auto lost =
		create_communicator(std::make_shared<Endpoint_Tcp>("no-such-host.invalid", port));

	first->Serve();
	CHECK(thrown_by([&] { second->Serve(); }).find(address) != std::string::npos);
	CHECK(thrown_by([&] { lost->Connect(); }).find("no-such-host") != std::string::npos);
}

void alarm_in_accept(Communicator &c)
{
	itimerval soon = { { 0, 0 }, { 0, 100000 } };

	c.Serve();
	std::signal(SIGALRM, [](int) {});
	setitimer(ITIMER_REAL, &soon, nullptr);
	CHECK(!c.Accept());
}

void run_alone(part *run)
{
	auto c = create_communicator(std::make_shared<Endpoint_Tcp>(address, free_port()));

	CHECK(status_of(start(run, *c)) == 0);
}

void what_fails_at_the_start_is_thrown()
{
	run_alone(fail_at_the_start);
}

void a_signal_ends_the_wait_for_a_client()
{
	run_alone(alarm_in_accept);
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
	TEST(without_a_connection_there_is_nothing_to_read),
	TEST(many_calls_are_answered),
	TEST(large_bodies_arrive_as_they_are),
	TEST(calls_without_an_answer_all_arrive),
	TEST(a_backend_that_is_killed_ends_the_read),
	TEST(a_frontend_that_is_killed_ends_the_read),
	TEST(frontends_that_have_left_leave_nothing_behind),
	TEST(nothing_is_done_for_no_bytes),
	TEST(what_fails_at_the_start_is_thrown),
	TEST(a_signal_ends_the_wait_for_a_client),
};

bool load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (library)
		create_communicator =
			reinterpret_cast<create_t *>(dlsym(library, "create_communicator"));
	return create_communicator;
}

} // namespace

int main(int argc, char **argv)
{
	int number = 0, failed = 0;

	if (argc != 4 || !load(argv[1])) {
		std::fprintf(stderr, "usage: test_gvirtus LIBRARY ADDRESS CALLS\n");
		return 2;
	}
	address = argv[2];
	calls = std::atoi(argv[3]);
	std::printf("1..%zu\n", sizeof(tests) / sizeof(tests[0]));
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
