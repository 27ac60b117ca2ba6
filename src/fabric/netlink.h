/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the kernel by netlink: one request, and an answer of one or many messages. */
#ifndef VB_FABRIC_NETLINK_H
#define VB_FABRIC_NETLINK_H

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

/* A request with its attributes. Zeroed but for `type`, `flags` and what stands before the attributes. */
struct vb__nl_request {
	struct nlmsghdr header;
	uint8_t body[256];
};

void vb__nl_begin(struct vb__nl_request *request, uint16_t type, uint16_t flags, const void *fixed,
		  size_t len);
void vb__nl_add(struct vb__nl_request *request, uint16_t type, const void *value, size_t len);

/*
 * Sends the request and calls `each` for every message of the answer. Returns 0, or the errno
 * of what failed here or of what the kernel said.
 */
int vb__nl_ask(int protocol, struct vb__nl_request *request,
	       void (*each)(void *arg, const struct nlmsghdr *message), void *arg);

/*
 * Attributes of a message, after `fixed` bytes, by their types: attributes[type] of those below
 * `count`, NULL where there is none. For one nested in another, pass that as `within`.
 */
void vb__nl_attributes(const struct nlmsghdr *message, size_t fixed,
		       const struct nlattr **attributes, unsigned count);
void vb__nl_nested(const struct nlattr *within, const struct nlattr **attributes, unsigned count);

/* The value, and how long it is. */
const void *vb__nl_value(const struct nlattr *attribute);
size_t vb__nl_len(const struct nlattr *attribute);

/* As a number, 0 if there is none or it is too short. */
uint32_t vb__nl_u32(const struct nlattr *attribute);
uint16_t vb__nl_u16(const struct nlattr *attribute);
uint8_t vb__nl_u8(const struct nlattr *attribute);

/* As a text, "" if there is none. */
void vb__nl_text(const struct nlattr *attribute, char *to, size_t size);

#endif
