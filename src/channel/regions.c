/* SPDX-License-Identifier: Apache-2.0 */
/* Regions: the user's memory that this channel's fabric may use as it is. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "channel/channel_state.h"
#include "channel/inside.h"

#define HUGE_PAGE (UINT64_C(2) << 20)

struct vb_region *vb__region_find(const struct vb_channel *ch, const struct iovec *piece)
{
	const uint8_t *addr = piece->iov_base;

	for (struct vb_region *r = ch->regions; r; r = r->next)
		if (addr >= r->addr && piece->iov_len <= r->len &&
		    (size_t)(addr - r->addr) <= r->len - piece->iov_len)
			return r;
	return NULL;
}

static bool overlaps(const struct vb_channel *ch, const uint8_t *addr, size_t len)
{
	for (const struct vb_region *r = ch->regions; r; r = r->next)
		if (addr < r->addr + r->len && r->addr < addr + len)
			return true;
	return false;
}

static int add_region(struct vb_channel *ch, struct vb_region *region, bool source,
		      struct vb_error *err)
{
	unsigned access = source			  ? VB__ACCESS_SOURCE
			  : ch->ep->caps & VB__CAP_WINDOW ? VB__ACCESS_BINDABLE
							  : VB__ACCESS_LOCAL;
	int rc = 0;

	if (overlaps(ch, region->addr, region->len))
		return vb__fail_invalid(err, "region", "it lies over another one of this channel");
	if (!(ch->ep->caps & VB__CAP_ANY_BUFFER))
		rc = vb__mr_open(ch->ep, region->addr, region->len, access, &region->mr, err);
	if (rc)
		return rc;
	region->next = ch->regions;
	ch->regions = region;
	return 0;
}

/* `mapped` bytes of it are ours, and go with the region, or now if it cannot be made. */
static int open_region(struct vb_channel *ch, void *addr, size_t len, size_t mapped, bool source,
		       struct vb_region **out, struct vb_error *err)
{
	struct vb_region *region = calloc(1, sizeof(*region));
	int rc;

	if (!region) {
		if (mapped)
			munmap(addr, mapped);
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	}
	*region = (struct vb_region){ .channel = ch, .addr = addr, .len = len, .mapped = mapped };
	vb__channel_lock(ch);
	rc = add_region(ch, region, source, err);
	vb__channel_unlock(ch);
	if (rc)
		vb__region_free(region);
	else
		*out = region;
	return rc;
}

static int open_given(struct vb_channel *ch, void *addr, size_t len, bool source,
		      struct vb_region **region, struct vb_error *err)
{
	vb__error_clear(err);
	if (!addr || !len)
		return vb__fail_invalid(err, "region", "it is empty");
	if (len > UINTPTR_MAX - (uintptr_t)addr)
		return vb__fail_invalid(err, "region", "it reaches beyond the end of memory");
	return open_region(ch, addr, len, 0, source, region, err);
}

int vb_region_open(struct vb_channel *ch, void *addr, size_t len, struct vb_region **region,
		   struct vb_error *err)
{
	return open_given(ch, addr, len, false, region, err);
}

int vb__region_open_source(struct vb_channel *ch, const void *addr, size_t len,
			   struct vb_region **region, struct vb_error *err)
{
	return open_given(ch, (void *)addr, len, true, region, err);
}

static size_t rounded(size_t len, size_t to)
{
	return len > SIZE_MAX - to ? 0 : (len + to - 1) / to * to;
}

static void *map(size_t len, int flags)
{
	void *addr =
		mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	return addr == MAP_FAILED ? NULL : addr;
}

int vb_region_alloc(struct vb_channel *ch, size_t len, struct vb_region **region,
		    struct vb_error *err)
{
	size_t mapped = rounded(len, HUGE_PAGE);
	void *addr = NULL;

	vb__error_clear(err);
	if (!len)
		return vb__fail_invalid(err, "region", "it is empty");
	if (len >= HUGE_PAGE && mapped)
		addr = map(mapped, MAP_HUGETLB);
	if (!addr) {
		mapped = rounded(len, (size_t)sysconf(_SC_PAGESIZE));
		addr = mapped ? map(mapped, 0) : NULL;
		if (!addr)
			return vb__fail_errno(err, mapped ? errno : ENOMEM, "mmap", "region");
		(void)madvise(addr, mapped, MADV_HUGEPAGE); /* where they are made on demand */
	}
	return open_region(ch, addr, len, mapped, false, region, err);
}

void *vb_region_addr(const struct vb_region *region)
{
	return region->addr;
}

size_t vb_region_len(const struct vb_region *region)
{
	return region->len;
}

void vb__region_free(struct vb_region *region)
{
	while (region->grants)
		vb__grant_free(region->grants);
	if (region->mapped)
		munmap(region->addr, region->mapped);
	free(region);
}

void vb_region_close(struct vb_region *region)
{
	struct vb_channel *ch;
	struct vb_region **at;

	if (!region)
		return;
	while (region->grants)
		vb_revoke(region->grants);
	ch = region->channel;
	vb__channel_lock(ch);
	vb__channel_wait_ticket(ch, ch->posted, UINT64_MAX, NULL);
	vb__access_finish(ch, ch->accesses.local, NULL);
	for (at = &ch->regions; *at != region; at = &(*at)->next)
		;
	*at = region->next;
	vb__mr_close(region->sink);
	vb__mr_close(region->mr);
	vb__channel_unlock(ch);
	vb__region_free(region);
}
