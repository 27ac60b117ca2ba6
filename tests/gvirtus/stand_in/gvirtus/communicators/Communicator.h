/* SPDX-License-Identifier: Apache-2.0 */
/* What a communicator of GVirtuS has to offer, for tests where GVirtuS is not. Not GVirtuS' own header. */
#ifndef STAND_IN_COMMUNICATOR_H
#define STAND_IN_COMMUNICATOR_H

#include <cstddef>
#include <string>

namespace gvirtus::communicators
{

class Communicator
{
public:
	virtual ~Communicator() = default;
	virtual void Serve() = 0;
	virtual const Communicator *const Accept() const = 0;
	virtual void Connect() = 0;
	virtual std::size_t Read(char *buffer, std::size_t size) = 0;
	virtual std::size_t Write(const char *buffer, std::size_t size) = 0;
	virtual void Sync() = 0;
	virtual void Close() = 0;
	virtual std::string to_string() = 0;
	virtual void run() = 0;
};

} // namespace gvirtus::communicators
#endif
