/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library calls what it imports by a table of addresses, which the dynamic linker has filled in as
 * the relocations say that name the functions. Those entries are changed here, as a profiler does.
 */
#include "fabric/ofi/ofi_imports.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct relocations {
	const ElfW(Rela) * first;
	size_t bytes;
};

struct image {
	ElfW(Addr) base;
	const ElfW(Sym) * symbols;
	const char *names;
	struct relocations tables[2];
	ElfW(Addr) sealed, sealed_end; /* what is read-only once the linker is done */
};

/* Some systems leave these addresses as they are in the file. */
static const void *pointer_in(const struct image *image, ElfW(Addr) value)
{
	return (const void *)(value < image->base ? value + image->base : value);
}

static void read_tables(struct image *image, const ElfW(Dyn) * d)
{
	for (; d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_SYMTAB:
			image->symbols = pointer_in(image, d->d_un.d_ptr);
			break;
		case DT_STRTAB:
			image->names = pointer_in(image, d->d_un.d_ptr);
			break;
		case DT_RELA:
			image->tables[0].first = pointer_in(image, d->d_un.d_ptr);
			break;
		case DT_RELASZ:
			image->tables[0].bytes = d->d_un.d_val;
			break;
		case DT_JMPREL:
			image->tables[1].first = pointer_in(image, d->d_un.d_ptr);
			break;
		case DT_PLTRELSZ:
			image->tables[1].bytes = d->d_un.d_val;
			break;
		default:
			break;
		}
	}
}

static int find_sealed(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct image *image = arg;

	(void)size;
	if (info->dlpi_addr != image->base)
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
			image->sealed = image->base + info->dlpi_phdr[i].p_vaddr;
			image->sealed_end = image->sealed + info->dlpi_phdr[i].p_memsz;
		}
	return 1;
}

static bool read_image(struct image *image, void *library)
{
	struct link_map *map;

	memset(image, 0, sizeof(*image));
	if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
		return false;
	image->base = map->l_addr;
	read_tables(image, map->l_ld);
	dl_iterate_phdr(find_sealed, image);
	return image->symbols && image->names;
}

static bool store(const struct image *image, ElfW(Addr) slot, ofi_function function)
{
	uintptr_t page = slot & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
	size_t bytes = slot + sizeof(function) - page;

	if (mprotect((void *)page, bytes, PROT_READ | PROT_WRITE) != 0)
		return false;
	__atomic_store_n((ofi_function *)slot, function, __ATOMIC_RELEASE);
	if (slot >= image->sealed && slot < image->sealed_end)
		mprotect((void *)page, bytes, PROT_READ);
	return true;
}

/* Which of the imports a relocation is about; `count`: of none. */
static unsigned find_import(const struct image *image, const ElfW(Rela) * r,
			    const struct ofi_import *imports, unsigned count)
{
	const ElfW(Sym) *symbol = &image->symbols[ELF64_R_SYM(r->r_info)];
	unsigned i = 0;

	if (symbol->st_shndx != SHN_UNDEF || !symbol->st_name || r->r_addend)
		return count;
	while (i < count && strcmp(image->names + symbol->st_name, imports[i].name) != 0)
		i++;
	return i;
}

/* Which of the imports there are, one bit each; with `change`, and could be changed. */
static unsigned walk(const struct image *image, const struct ofi_import *imports, unsigned count,
		     bool change)
{
	unsigned found = 0;

	for (unsigned t = 0; t < 2; t++)
		for (size_t i = 0; i < image->tables[t].bytes / sizeof(ElfW(Rela)); i++) {
			const ElfW(Rela) *r = &image->tables[t].first[i];
			unsigned which = find_import(image, r, imports, count);

			if (which < count && (!change || store(image, image->base + r->r_offset,
							       imports[which].instead)))
				found |= 1u << which;
		}
	return found;
}

bool ofi_imports_replace(void *library, const struct ofi_import *imports, unsigned count)
{
	unsigned all = (1u << count) - 1;
	struct image image;

	return read_image(&image, library) && walk(&image, imports, count, false) == all &&
	       walk(&image, imports, count, true) == all;
}
