/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library for C++17 and later: the calls of the C headers, which say what each of them does, as
 * members of objects that clean up after themselves.
 *
 *	vb::listener listener(nullptr, "7471");
 *	vb::channel channel = listener.accept();
 *	while (auto message = channel.recv())
 *		std::cout << *message << '\n';
 *	channel.close();
 *
 * and the other side
 *
 *	vb::channel channel("host", "7471");
 *	channel.send("hello");
 *	channel.close();
 *
 * A failure is a vb::error. The end of what the peer sends is none: it is an empty optional, or a short read.
 *
 * Objects own what they stand for and can be moved, not copied; one that was moved from can only be assigned to or
 * destroyed. close() ends a channel or a stream in good order, and may block and throw. A destructor throws nothing: a
 * channel or stream that was not closed is aborted, at once, so that no peer takes what an exception has cut off for all of
 * it. Some wait as their C calls do: a server up to a second for its clients, a region for what was posted from it, a
 * grant for an access that has begun. Regions belong to a channel and grants to a region: they must go first. Destructors do it in that order where these
 * are declared later; before close() of a channel, revoke() its grants and close() its regions.
 *
 * Everything is inline and no more than the C call; get() gives what that takes. Threads: as in C.
 */
#ifndef VERBATIM_VERBATIM_HPP
#define VERBATIM_VERBATIM_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <verbatim/server.h>
#include <verbatim/verbatim.h>

namespace vb
{

/* ---- Failures ---- */

/* what() is the line of vb_error_format. */
class error : public std::runtime_error
{
public:
	explicit error(const vb_error &details)
		: std::runtime_error(line(details)), details_(details)
	{
	}

	vb_err code() const noexcept
	{
		return details_.code;
	}

	const vb_error &get() const noexcept
	{
		return details_;
	}

private:
	static std::string line(const vb_error &details)
	{
		char text[VB_ERROR_LINE_MAX];

		return vb_error_format(&details, text, sizeof(text));
	}

	vb_error details_;
};

/* What came of a try_ call that may also meet the end. */
enum class attempt {
	done,
	again, /* not yet: wait on the descriptor */
	end,   /* the peer sends no more */
};

namespace detail
{

/* Out of the way of calls that go well. */
[[noreturn]] inline void fail(const vb_error &err)
{
	throw error(err);
}

template <class Result> Result checked(Result result, const vb_error &err)
{
	if (result < 0)
		fail(err);
	return result;
}

/* False: not yet. */
inline bool tried(int result, const vb_error &err)
{
	if (result == VB_ERR_AGAIN)
		return false;
	checked(result, err);
	return true;
}

inline std::optional<std::size_t> tried_bytes(ssize_t result, const vb_error &err)
{
	if (result == VB_ERR_AGAIN)
		return std::nullopt;
	return static_cast<std::size_t>(checked(result, err));
}

inline attempt tried_or_end(ssize_t result, const vb_error &err)
{
	if (result == VB_ERR_AGAIN)
		return attempt::again;
	if (result == VB_ERR_EOF)
		return attempt::end;
	checked(result, err);
	return attempt::done;
}

inline std::string_view view(const void *data, ssize_t len)
{
	return { static_cast<const char *>(data), static_cast<std::size_t>(len) };
}

template <auto release> struct releaser {
	template <class Object> void operator()(Object *object) const noexcept
	{
		release(object);
	}
};

template <class Object, auto release> using owner = std::unique_ptr<Object, releaser<release>>;

} // namespace detail

/* ---- Channels ---- */

/* A channel that somebody else owns, a server's client say. */
class channel_ref
{
public:
	channel_ref() noexcept = default;

	explicit channel_ref(vb_channel *channel) noexcept : channel_(channel)
	{
	}

	vb_channel *get() const noexcept
	{
		return channel_;
	}

	void send(const void *message, std::size_t len) const
	{
		vb_error err;

		detail::checked(vb_channel_send(channel_, message, len, &err), err);
	}

	void send(std::string_view message) const
	{
		send(message.data(), message.size());
	}

	void sendv(const iovec *pieces, int count) const
	{
		vb_error err;

		detail::checked(vb_channel_sendv(channel_, pieces, count, &err), err);
	}

	/* Valid until the next receive or close. Empty when the peer sends no more. */
	std::optional<std::string_view> recv() const
	{
		vb_error err;
		const void *message;
		ssize_t len = vb_channel_recv(channel_, &message, &err);

		if (len == VB_ERR_EOF)
			return std::nullopt;
		return detail::view(message, detail::checked(len, err));
	}

	void finish() const
	{
		vb_error err;

		detail::checked(vb_channel_finish(channel_, &err), err);
	}

	std::int64_t post(const iovec *pieces, int count) const
	{
		vb_error err;

		return detail::checked(vb_channel_post(channel_, pieces, count, &err), err);
	}

	void wait(std::int64_t ticket) const
	{
		vb_error err;

		detail::checked(vb_channel_wait(channel_, ticket, &err), err);
	}

	/* Event loops: false and an empty optional mean not yet. */

	bool try_send(std::string_view message) const
	{
		vb_error err;

		return detail::tried(
			vb_channel_try_send(channel_, message.data(), message.size(), &err), err);
	}

	std::optional<std::int64_t> try_post(const iovec *pieces, int count) const
	{
		vb_error err;
		std::int64_t ticket = vb_channel_try_post(channel_, pieces, count, &err);

		if (ticket == VB_ERR_AGAIN)
			return std::nullopt;
		return detail::checked(ticket, err);
	}

	bool try_wait(std::int64_t ticket) const
	{
		vb_error err;

		return detail::tried(vb_channel_try_wait(channel_, ticket, &err), err);
	}

	attempt try_recv(std::string_view &message) const
	{
		vb_error err;
		const void *data;
		ssize_t len = vb_channel_try_recv(channel_, &data, &err);
		attempt result = detail::tried_or_end(len, err);

		if (result == attempt::done)
			message = detail::view(data, len);
		return result;
	}

	void set_timeout(std::uint32_t timeout_ms) const noexcept
	{
		vb_channel_set_timeout(channel_, timeout_ms);
	}

	bool try_finish() const
	{
		vb_error err;

		return detail::tried(vb_channel_try_finish(channel_, &err), err);
	}

	int fd() const
	{
		vb_error err;

		return detail::checked(vb_channel_fd(channel_, &err), err);
	}

	/* The peer's memory. */

	void put(const vb_token &token, std::uint64_t offset, const void *data,
		 std::size_t len) const
	{
		vb_error err;

		detail::checked(vb_put(channel_, &token, offset, data, len, &err), err);
	}

	void put_notify(const vb_token &token, std::uint64_t offset, const void *data,
			std::size_t len, std::uint32_t number) const
	{
		vb_error err;

		detail::checked(vb_put_notify(channel_, &token, offset, data, len, number, &err),
				err);
	}

	void get(const vb_token &token, std::uint64_t offset, void *data, std::size_t len) const
	{
		vb_error err;

		detail::checked(vb_get(channel_, &token, offset, data, len, &err), err);
	}

	/* Returns what was there before. */
	std::uint64_t fetch_add(const vb_token &token, std::uint64_t offset,
				std::uint64_t add) const
	{
		vb_error err;
		std::uint64_t before;

		detail::checked(vb_fetch_add(channel_, &token, offset, add, &before, &err), err);
		return before;
	}

	/* Likewise: it was stored if that is what was expected. */
	std::uint64_t compare_swap(const vb_token &token, std::uint64_t offset,
				   std::uint64_t expected, std::uint64_t desired) const
	{
		vb_error err;
		std::uint64_t before;

		detail::checked(vb_compare_swap(channel_, &token, offset, expected, desired,
						&before, &err),
				err);
		return before;
	}

	std::int64_t post(const vb_access *accesses, int count) const
	{
		vb_error err;

		return detail::checked(vb_access_post(channel_, accesses, count, &err), err);
	}

	void wait_access(std::int64_t handle) const
	{
		vb_error err;

		detail::checked(vb_access_wait(channel_, handle, &err), err);
	}

	bool try_access(std::int64_t handle) const
	{
		vb_error err;

		return detail::tried(vb_access_try(channel_, handle, &err), err);
	}

	/* The number of the peer's next put_notify. Empty when none will come. */
	std::optional<std::uint32_t> notice() const
	{
		vb_error err;
		std::uint32_t number;
		int rc = vb_notice_wait(channel_, &number, &err);

		if (rc == VB_ERR_EOF)
			return std::nullopt;
		detail::checked(rc, err);
		return number;
	}

	attempt try_notice(std::uint32_t &number) const
	{
		vb_error err;

		return detail::tried_or_end(vb_notice_try(channel_, &number, &err), err);
	}

	/* Looking at it. */

	const char *description() const noexcept
	{
		return vb_channel_description(channel_);
	}

	const char *fabric() const noexcept
	{
		return vb_channel_fabric(channel_);
	}

	const char *device() const noexcept
	{
		return vb_channel_device(channel_);
	}

	const char *peer() const noexcept
	{
		return vb_channel_peer(channel_);
	}

	std::size_t max_message() const noexcept
	{
		return vb_channel_max_message(channel_);
	}

	unsigned depth() const noexcept
	{
		return vb_channel_depth(channel_);
	}

	vb_counters counters() const noexcept
	{
		vb_counters counters;

		vb_channel_counters(channel_, &counters);
		return counters;
	}

protected:
	vb_channel *channel_ = nullptr;
};

class channel : public channel_ref
{
public:
	channel() noexcept = default;

	channel(const char *host, const char *port, const vb_options &options = {})
	{
		vb_error err;

		detail::checked(vb_channel_connect(host, port, &options, &channel_, &err), err);
	}

	/* Takes it over. */
	explicit channel(vb_channel *owned) noexcept : channel_ref(owned)
	{
	}

	channel(channel &&other) noexcept : channel_ref(std::exchange(other.channel_, nullptr))
	{
	}

	channel &operator=(channel &&other) noexcept
	{
		if (this != &other)
			vb_channel_abort(
				std::exchange(channel_, std::exchange(other.channel_, nullptr)));
		return *this;
	}

	~channel()
	{
		vb_channel_abort(channel_);
	}

	void close()
	{
		vb_error err;

		detail::checked(vb_channel_close(std::exchange(channel_, nullptr), &err), err);
	}

	/* True when it is done. */
	bool try_close()
	{
		vb_error err;
		const int result = vb_channel_try_close(channel_, &err);

		if (result != VB_ERR_AGAIN)
			channel_ = nullptr;
		return detail::tried(result, err);
	}

	void abort() noexcept
	{
		vb_channel_abort(std::exchange(channel_, nullptr));
	}
};

class listener
{
public:
	listener() noexcept = default;

	listener(const char *host, const char *port, const vb_options &options = {})
	{
		vb_error err;
		vb_listener *opened = nullptr;

		detail::checked(vb_listener_open(host, port, &options, &opened, &err), err);
		listener_.reset(opened);
	}

	channel accept()
	{
		vb_error err;
		vb_channel *accepted;

		detail::checked(vb_listener_accept(get(), &accepted, &err), err);
		return channel(accepted);
	}

	std::optional<channel> try_accept()
	{
		vb_error err;
		vb_channel *accepted;

		if (!detail::tried(vb_listener_try_accept(get(), &accepted, &err), err))
			return std::nullopt;
		return channel(accepted);
	}

	void close() noexcept
	{
		listener_.reset();
	}

	int fd() const noexcept
	{
		return vb_listener_fd(get());
	}

	int port() const noexcept
	{
		return vb_listener_port(get());
	}

	const char *description() const noexcept
	{
		return vb_listener_description(get());
	}

	vb_listener *get() const noexcept
	{
		return listener_.get();
	}

private:
	detail::owner<vb_listener, vb_listener_close> listener_;
};

/* ---- Memory that is lent ---- */

/* Rights of the peer's, until the object is gone, which must be before its region is; as that must be before its channel is. */
class grant
{
public:
	grant() noexcept = default;

	grant(vb_region *region, std::size_t offset, std::size_t len, unsigned rights)
	{
		vb_error err;
		struct ::vb_grant *granted;

		detail::checked(vb_grant(region, offset, len, rights, &granted, &err), err);
		grant_.reset(granted);
	}

	void revoke() noexcept
	{
		grant_.reset();
	}

	const vb_token &token() const noexcept
	{
		return *vb_grant_token(get());
	}

	struct ::vb_grant *get() const noexcept
	{
		return grant_.get();
	}

private:
	detail::owner<struct ::vb_grant, vb_revoke> grant_;
};

class region
{
public:
	region() noexcept = default;

	/* Memory of the library's, zeroed. */
	region(channel_ref channel, std::size_t len)
	{
		vb_error err;
		vb_region *opened;

		detail::checked(vb_region_alloc(channel.get(), len, &opened, &err), err);
		region_.reset(opened);
	}

	/* Memory of the caller's, which must stay mapped. */
	region(channel_ref channel, void *addr, std::size_t len)
	{
		vb_error err;
		vb_region *opened;

		detail::checked(vb_region_open(channel.get(), addr, len, &opened, &err), err);
		region_.reset(opened);
	}

	/* `rights` are of enum vb_right. */
	vb::grant grant(std::size_t offset, std::size_t len, unsigned rights) const
	{
		return vb::grant(get(), offset, len, rights);
	}

	void close() noexcept
	{
		region_.reset();
	}

	void *addr() const noexcept
	{
		return vb_region_addr(get());
	}

	std::size_t size() const noexcept
	{
		return vb_region_len(get());
	}

	vb_region *get() const noexcept
	{
		return region_.get();
	}

private:
	detail::owner<vb_region, vb_region_close> region_;
};

/* How many bytes a token of the peer's grants, and which rights. */
struct token_info {
	std::uint64_t len;
	unsigned rights;
};

inline token_info read_token(const vb_token &token)
{
	vb_error err;
	token_info info;

	detail::checked(vb_token_read(&token, &info.len, &info.rights, &err), err);
	return info;
}

/* ---- Streams ---- */

class stream
{
public:
	stream() noexcept = default;

	stream(const char *host, const char *port, const vb_stream_options &options = {})
	{
		vb_error err;
		vb_stream *connected;

		detail::checked(vb_stream_connect(host, port, &options, &connected, &err), err);
		stream_.reset(connected);
	}

	/* Takes it over. */
	explicit stream(vb_stream *owned) noexcept : stream_(owned)
	{
	}

	/* Returns `len`; less only at the end. */
	std::size_t read(void *data, std::size_t len)
	{
		vb_error err;

		return static_cast<std::size_t>(
			detail::checked(vb_stream_read(get(), data, len, &err), err));
	}

	void write(const void *data, std::size_t len)
	{
		vb_error err;

		detail::checked(vb_stream_write(get(), data, len, &err), err);
	}

	void write(std::string_view data)
	{
		write(data.data(), data.size());
	}

	void sync()
	{
		vb_error err;

		detail::checked(vb_stream_sync(get(), &err), err);
	}

	void flush()
	{
		vb_error err;

		detail::checked(vb_stream_flush(get(), &err), err);
	}

	void close()
	{
		vb_error err;

		detail::checked(vb_stream_close(stream_.release(), &err), err);
	}

	void abort() noexcept
	{
		stream_.reset();
	}

	/* Event loops: false and an empty optional mean not yet, and 0 bytes read the end. */

	std::optional<std::size_t> try_read(void *data, std::size_t len)
	{
		vb_error err;

		return detail::tried_bytes(vb_stream_try_read(get(), data, len, &err), err);
	}

	std::optional<std::size_t> try_write(const void *data, std::size_t len)
	{
		vb_error err;

		return detail::tried_bytes(vb_stream_try_write(get(), data, len, &err), err);
	}

	bool try_sync()
	{
		vb_error err;

		return detail::tried(vb_stream_try_sync(get(), &err), err);
	}

	bool try_flush()
	{
		vb_error err;

		return detail::tried(vb_stream_try_flush(get(), &err), err);
	}

	int fd() const
	{
		vb_error err;

		return detail::checked(vb_stream_fd(get(), &err), err);
	}

	/* Keeps memory registered until forget() or the stream's end. */
	void keep(void *data, std::size_t len)
	{
		vb_error err;

		detail::checked(vb_stream_keep(get(), data, len, &err), err);
	}

	void forget(void *data) noexcept
	{
		vb_stream_forget(get(), data);
	}

	const char *description() const noexcept
	{
		return vb_stream_description(get());
	}

	const char *peer() const noexcept
	{
		return vb_stream_peer(get());
	}

	struct ::vb_stream_counters counters() const noexcept
	{
		struct ::vb_stream_counters counters;

		vb_stream_counters(get(), &counters);
		return counters;
	}

	vb_stream *get() const noexcept
	{
		return stream_.get();
	}

private:
	detail::owner<vb_stream, vb_stream_abort> stream_;
};

class stream_server
{
public:
	stream_server() noexcept = default;

	stream_server(const char *host, const char *port, const vb_stream_options &options = {})
	{
		vb_error err;
		vb_stream_server *opened;

		detail::checked(vb_stream_serve(host, port, &options, &opened, &err), err);
		server_.reset(opened);
	}

	stream accept()
	{
		vb_error err;
		vb_stream *accepted;

		detail::checked(vb_stream_accept(get(), &accepted, &err), err);
		return stream(accepted);
	}

	std::optional<stream> try_accept()
	{
		vb_error err;
		vb_stream *accepted;

		if (!detail::tried(vb_stream_try_accept(get(), &accepted, &err), err))
			return std::nullopt;
		return stream(accepted);
	}

	void close() noexcept
	{
		server_.reset();
	}

	int fd() const noexcept
	{
		return vb_stream_server_fd(get());
	}

	int port() const noexcept
	{
		return vb_stream_server_port(get());
	}

	vb_stream_server *get() const noexcept
	{
		return server_.get();
	}

private:
	detail::owner<vb_stream_server, vb_stream_server_close> server_;
};

/* ---- Servers ---- */

/* Clients belong to the server: vb::channel_ref(event.client).send("hello"). */
class server
{
public:
	server() noexcept = default;

	server(const char *host, const char *port, const vb_server_options &options = {})
	{
		vb_error err;
		vb_server *opened;

		detail::checked(vb_server_open(host, port, &options, &opened, &err), err);
		server_.reset(opened);
	}

	/* False if nothing has happened in that time; without limit if negative. */
	bool wait(vb_server_event &event, int timeout_ms = -1)
	{
		vb_error err;

		return detail::tried(vb_server_wait(get(), timeout_ms, &event, &err), err);
	}

	void close_client(channel_ref client)
	{
		vb_error err;

		detail::checked(vb_server_close_client(get(), client.get(), &err), err);
	}

	void close() noexcept
	{
		server_.reset();
	}

	int fd() const noexcept
	{
		return vb_server_fd(get());
	}

	int port() const noexcept
	{
		return vb_server_port(get());
	}

	unsigned clients() const noexcept
	{
		return vb_server_clients(get());
	}

	const char *description() const noexcept
	{
		return vb_server_description(get());
	}

	vb_server *get() const noexcept
	{
		return server_.get();
	}

private:
	detail::owner<vb_server, vb_server_close> server_;
};

/* ---- Transfers ---- */

class session
{
public:
	session() noexcept = default;

	session(const char *host, const char *port, const vb_transfer_options &options)
	{
		vb_error err;
		vb_session *connected;

		detail::checked(vb_session_connect(host, port, &options, &connected, &err), err);
		session_.reset(connected);
	}

	/* Takes it over. */
	explicit session(vb_session *owned) noexcept : session_(owned)
	{
	}

	vb_report send(const vb_input &input)
	{
		vb_error err;
		vb_report report;

		detail::checked(vb_session_send(get(), &input, &report, &err), err);
		return report;
	}

	vb_report receive(const vb_output &output)
	{
		vb_error err;
		vb_report report;

		detail::checked(vb_session_receive(get(), &output, &report, &err), err);
		return report;
	}

	vb_tree_report send_tree(const char *const *paths, std::size_t path_count,
				 const vb_tree_options &options = {})
	{
		vb_error err;
		vb_tree_report report;

		detail::checked(vb_session_send_tree(get(), paths, path_count, &options, &report,
						     &err),
				err);
		return report;
	}

	vb_tree_report receive_tree(const char *path, const vb_tree_options &options = {})
	{
		vb_error err;
		vb_tree_report report;

		detail::checked(vb_session_receive_tree(get(), path, &options, &report, &err), err);
		return report;
	}

	void close() noexcept
	{
		session_.reset();
	}

	const char *description() const noexcept
	{
		return vb_session_description(get());
	}

	/* nullptr: the data is not encrypted, or that is not agreed on yet. */
	const char *cipher() const noexcept
	{
		return vb_session_cipher(get());
	}

	const char *peer() const noexcept
	{
		return vb_session_peer(get());
	}

	vb_session *get() const noexcept
	{
		return session_.get();
	}

private:
	detail::owner<vb_session, vb_session_close> session_;
};

class door
{
public:
	door() noexcept = default;

	door(const char *host, const char *port, const vb_transfer_options &options)
	{
		vb_error err;
		vb_door *opened;

		detail::checked(vb_door_open(host, port, &options, &opened, &err), err);
		door_.reset(opened);
	}

	/* The door must outlive the session's transfer. */
	session wait()
	{
		vb_error err;
		vb_session *found;

		detail::checked(vb_door_wait(get(), &found, &err), err);
		return session(found);
	}

	void close() noexcept
	{
		door_.reset();
	}

	int port() const noexcept
	{
		return vb_door_port(get());
	}

	const char *description() const noexcept
	{
		return vb_door_description(get());
	}

	vb_door *get() const noexcept
	{
		return door_.get();
	}

private:
	detail::owner<vb_door, vb_door_close> door_;
};

/* From one place to another on this host. */
inline vb_tree_report copy_tree(const char *const *paths, std::size_t path_count,
				const char *target, const vb_tree_options &options = {},
				const vb_transfer_options &transfer = {})
{
	vb_error err;
	vb_tree_report report;

	detail::checked(vb_tree_copy(paths, path_count, target, &options, &transfer, &report, &err),
			err);
	return report;
}

} // namespace vb
#endif
