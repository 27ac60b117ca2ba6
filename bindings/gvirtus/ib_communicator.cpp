/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A communicator of GVirtuS over a stream: libgvirtus-communicators-ib.so, which GVirtuS loads for the protocol "ib".
 * README.md tells how it is set up, and why it does what it does.
 */
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <utility>
#include <verbatim/verbatim.hpp>

#include <gvirtus/communicators/Communicator.h>
#include <gvirtus/communicators/Endpoint_Tcp.h>
#if __has_include(<gvirtus/communicators/Endpoint_Rdma.h>)
#include <gvirtus/communicators/Endpoint_Rdma.h>
#endif

namespace
{

using gvirtus::communicators::Communicator;
using gvirtus::communicators::Endpoint;

/* GVirtuS learns from a 0 that it failed, and from nowhere why. */
void tell(const char *line) noexcept
{
	std::fprintf(stderr, "gvirtus-communicators-ib: %s\n", line);
}

void tell(const vb_error &err) noexcept
{
	char line[VB_ERROR_LINE_MAX];

	tell(vb_error_format(&err, line, sizeof(line)));
}

/* `const Communicator *`, and in some versions of GVirtuS that itself const, which an override must repeat. */
template <class Function> struct result_of;
template <class Result> struct result_of<Result (Communicator::*)() const> {
	using type = Result;
};
using accepted = result_of<decltype(&Communicator::Accept)>::type;

class IbCommunicator : public Communicator
{
public:
	/* Opens nothing: the backend forks afterwards. */
	IbCommunicator(std::string host, std::string port)
		: host_(std::move(host)), port_(std::move(port))
	{
	}

	explicit IbCommunicator(vb::stream stream) : stream_(std::move(stream))
	{
	}

	~IbCommunicator() override
	{
		end_stream();
	}

	void Serve() override
	{
		server_ = vb::stream_server(host_.c_str(), port_.c_str());
	}

	/* Without a client after a second, or a signal, so that the backend can look whether it is to end. */
	accepted Accept() const override
	{
		try {
			std::optional<vb::stream> stream = server_.try_accept();

			while (!stream && readable_soon(server_.fd()))
				stream = server_.try_accept();
			return stream ? new IbCommunicator(std::move(*stream)) : nullptr;
		} catch (const std::exception &error) {
			tell(error.what());
			poll(nullptr, 0, 1000);
			return nullptr;
		}
	}

	void Connect() override
	{
		failed_ = false;
		stream_ = vb::stream(host_.c_str(), port_.c_str());
	}

	/* The backend never closes nor deletes what it has accepted: at its end the stream has to go by itself. */
	size_t Read(char *buffer, size_t size) override
	{
		vb_error err;
		ssize_t got;

		if (size == 0 || !stream_.get())
			return 0;
		got = vb_stream_read(stream_.get(), buffer, size, &err);
		if (got == static_cast<ssize_t>(size))
			return size;
		if (got < 0)
			fail(err);
		end_stream();
		return 0;
	}

	size_t Write(const char *buffer, size_t size) override
	{
		vb_error err;

		if (size == 0 || !stream_.get())
			return 0;
		if (vb_stream_write(stream_.get(), buffer, size, &err) == 0)
			return size;
		fail(err);
		return 0;
	}

	/* Not vb_stream_sync: the answer will tell that the request was read. */
	void Sync() override
	{
		vb_error err;

		if (stream_.get() && vb_stream_flush(stream_.get(), &err) != 0)
			fail(err);
	}

	void Close() override
	{
		end_stream();
		server_.close();
	}

	/* The backend reads names byte by byte from what calls itself so, and from others in ways of their own. */
	std::string to_string() override
	{
		return "tcpcommunicator";
	}

	void run() override
	{
	}

private:
	static bool readable_soon(int fd)
	{
		pollfd descriptor = { fd, POLLIN, 0 };

		return poll(&descriptor, 1, 1000) > 0;
	}

	/* A stream that has failed once fails for ever: it is told once. */
	void fail(const vb_error &err) noexcept
	{
		if (!std::exchange(failed_, true))
			tell(err);
	}

	/* Requests that nobody answers may still be under way, so the end is a good one. */
	void end_stream() noexcept
	{
		try {
			if (stream_.get() && !failed_)
				stream_.close();
		} catch (const vb::error &error) {
			fail(error.get());
		}
		stream_.abort();
	}

	std::string host_, port_;
	mutable vb::stream_server server_;
	vb::stream stream_;
	bool failed_ = false;
};

template <class Kind> std::shared_ptr<Communicator> made_from(const Endpoint &endpoint)
{
	const Kind *place = dynamic_cast<const Kind *>(&endpoint);

	if (!place)
		return nullptr;
	return std::make_shared<IbCommunicator>(place->address(), std::to_string(place->port()));
}

} // namespace

extern "C" std::shared_ptr<Communicator> create_communicator(std::shared_ptr<Endpoint> endpoint)
{
	using namespace gvirtus::communicators;
	std::shared_ptr<Communicator> made = made_from<Endpoint_Tcp>(*endpoint);

#if __has_include(<gvirtus/communicators/Endpoint_Rdma.h>)
	if (!made)
		made = made_from<Endpoint_Rdma>(*endpoint);
#endif
	if (!made)
		throw std::runtime_error(
			"gvirtus-communicators-ib: the endpoint has no address and port");
	return made;
}
