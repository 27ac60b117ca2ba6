/* SPDX-License-Identifier: Apache-2.0 */
/* An endpoint of GVirtuS as far as a communicator looks at it. Not GVirtuS' own header. */
#ifndef STAND_IN_ENDPOINT_TCP_H
#define STAND_IN_ENDPOINT_TCP_H

#include <cstdint>
#include <string>
#include <utility>

namespace gvirtus::communicators
{

class Endpoint
{
public:
	virtual ~Endpoint() = default;
};

class Endpoint_Tcp : public Endpoint
{
public:
	Endpoint_Tcp(std::string address, std::uint16_t port)
		: address_(std::move(address)), port_(port)
	{
	}

	const std::string &address() const
	{
		return address_;
	}

	const std::uint16_t &port() const
	{
		return port_;
	}

private:
	std::string address_;
	std::uint16_t port_;
};

} // namespace gvirtus::communicators
#endif
