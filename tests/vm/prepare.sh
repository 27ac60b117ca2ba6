# shellcheck shell=bash disable=SC2154 # here, cache and work are set by vm
# Makes what a guest boots from: kernel, modules (siw built where the distribution has none), initramfs, ssh keys.
# Sourced by vm. Nothing is installed but missing packages: debs are downloaded and unpacked into the cache.
#
#   $cache/choice-*             the kernel package picked, as long as apt's lists are older
#   $cache/kernel-VERSION-HASH/ vmlinux and lib/modules; HASH covers the functions that make them
#       initrd-HASH.gz          HASH covers guest-boot and make_initrd
#   $cache/keys/                ssh keys of guests
#   $cache/accel-*              kvm or tcg: what boots a guest since this host was started
#   $cache/tmp.*                work of running commands; what is done moves to its name above at once, by rename

# Modules the initramfs loads before guest-init runs, in this order, each after what it needs. All that a guest usually
# needs is here, as loading over 9p is slow; a rarer one is found by modprobe in the shared lib/modules.
boot_modules=(virtio_pci virtio_console virtio_rng 9pnet_virtio 9p overlay virtio_net veth
	crc32_generic crc32_pclmul crc32c_generic libcrc32c ib_uverbs rdma_ucm rdma_rxe siw)

packages() {
	printf '%s\n' qemu-system-x86 busybox-static cpio kmod xz-utils zstd lz4 build-essential util-linux \
		iproute2 rdma-core ibverbs-providers ibverbs-utils rdmacm-utils perftest openssh-client openssh-server rsync
}

prepare() {
	[ "$(uname -m)" = x86_64 ] || skip "the VM tests need an x86_64 host, this is $(uname -m)"
	command -v apt-get dpkg-deb >/dev/null || skip "the VM tests take their kernel from Debian's or Ubuntu's packages; there is no apt-get here"
	mkdir -p "$cache"
	exec 9> "$cache/lock"
	flock 9
	install_missing
	qemu-system-x86_64 --version >/dev/null 2>&1 || skip "qemu-system-x86_64 does not run here"
	choose_kernel
	find_kernel
	if [ ! -e "$kernel/vmlinux" ]; then make_kernel; fi
	if [ ! -e "$initrd" ]; then make_initrd; fi
	if [ ! -e "$cache/keys" ]; then make_keys; fi
	touch "$kernel"
	find "$cache" -maxdepth 1 '(' -name 'kernel-*' -mtime +30 -o -name 'tmp.*' -mtime +1 ')' -exec rm -rf {} +
	if [ ! -e "$accel_file" ]; then probe_accel; fi
	exec 9>&-
}

install_missing() {
	local missing sudo=()
	# shellcheck disable=SC2016 # dpkg-query's variables
	mapfile -t missing < <(comm -23 <(packages | sort) \
		<(packages | xargs dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p' | sort))
	[ ${#missing[@]} -gt 0 ] || return 0
	if [ "$(id -u)" != 0 ]; then
		sudo -n true 2>/dev/null || skip "packages are missing; install them: ${missing[*]}"
		sudo=(sudo -n)
	fi
	step "installing ${missing[*]}"
	DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null ||
		die "apt-get could not install ${missing[*]}; try apt-get update"
}

# Sets package, version and release (uname -r of the guest). apt-cache takes a second, so its answer is kept.
choose_kernel() {
	local meta package='' choice=$cache/choice-${VB_VM_KERNEL:-default}
	if [ ! "$choice" -nt /var/lib/apt/lists ]; then
		for meta in ${VB_VM_KERNEL:-linux-image-amd64 linux-image-generic}; do
			package=$({ echo " Depends: $meta"; apt-cache depends "$meta" 2>/dev/null; } |
				awk '/ Depends: linux-image-[0-9]/ { print $2; exit }')
			[ -z "$package" ] || break
		done
		[ -n "$package" ] || die "apt knows no kernel package; try apt-get update"
		echo "$package $(apt-cache show --no-all-versions "$package" | sed -n 's/^Version: //p')" > "$work/choice"
		mv "$work/choice" "$choice"
	fi
	read -r package version < "$choice"
	release=${package#linux-image-}
}

hash12() { sha256sum | cut -c 1-12; }

find_kernel() {
	kernel=$cache/kernel-$release-$version-$(declare -f make_kernel extract_vmlinux build_siw fetch | hash12)
	initrd=$kernel/initrd-$({ declare -f make_initrd; echo "${boot_modules[@]}"; cat "$here/guest-boot"; } | hash12).gz
	accel_file=$cache/accel-$(< /proc/sys/kernel/random/boot_id)
}

# fetch DIRECTORY PACKAGE...: downloads packages and unpacks them into DIRECTORY
fetch() {
	local into=$1 opts=()
	shift
	[ "$(id -u)" != 0 ] || opts=(-o APT::Sandbox::User=root)
	mkdir -p "$into" "$work/debs"
	(cd "$work/debs" && apt-get "${opts[@]}" -qq download "$@" >/dev/null) || die "cannot download $*; try apt-get update"
	find "$work/debs" -name '*.deb' -exec dpkg-deb -x {} "$into" \;
	rm -rf "$work/debs"
}

make_kernel() {
	local root=$work/kernel also=()
	step "fetching the kernel $release"
	# Ubuntu keeps the modules in packages of their own.
	mapfile -t also < <(apt-cache pkgnames "linux-modules-" | grep -xE "linux-modules-(extra-)?$release" || true)
	fetch "$root" "linux-image-$release" "${also[@]}"
	[ -d "$root/lib/modules" ] || { mkdir -p "$root/lib" && mv "$root/usr/lib/modules" "$root/lib/modules"; }
	# Nothing that a guest without hardware could use, and most of the size.
	rm -rf "$root"/lib/modules/*/kernel/{sound,drivers/{gpu,media,scsi,iio,staging,usb,infiniband/hw,net/{ethernet,wireless}}} "${root:?}/usr"
	extract_vmlinux "$root/boot/vmlinuz-$release" "$root/vmlinux"
	depmod -b "$root" "$release"
	modprobe_in "$root" siw >/dev/null 2>&1 || build_siw "$root"
	rm -rf "$kernel"
	mv "$root" "$kernel"
}

# The ELF inside vmlinuz boots by PVH: no BIOS loader, no decompression under emulation. Else vmlinuz must do.
extract_vmlinux() {
	local magic tool offset offsets pair
	if grep -q '^CONFIG_PVH=y' "$(dirname "$1")/config-$release"; then
		for pair in '\xfd7zXZ\x00:xz' '\x28\xb5\x2f\xfd:zstd' '\x1f\x8b\x08:gzip' '\x02\x21\x4c\x18:lz4'; do
			magic=${pair%:*} tool=${pair#*:}
			mapfile -t offsets < <(LC_ALL=C grep -aboP "$magic" "$1" | cut -d: -f1)
			for offset in "${offsets[@]}"; do
				# The tool complains about what follows the compressed kernel; only the result counts.
				tail -c +$((offset + 1)) "$1" | "$tool" -dc > "$2" 2>/dev/null || true
				[ "$(head -c 4 "$2" | tail -c 3)" != ELF ] || return 0
			done
		done
	fi
	step "no ELF kernel found inside $(basename "$1"): guests start a few seconds slower"
	cp "$1" "$2"
}

modprobe_in() { modprobe -C /dev/null -d "$1" -S "$release" --show-depends "$2"; }

# Debian has no siw: build it from Debian's own source against Debian's own headers, none of them installed.
build_siw() {
	local root=$1 src=$work/src series headers
	series=$(cut -d. -f1,2 <<< "$release")
	step "building siw for $release"
	mapfile -t headers < <(apt-cache depends "linux-headers-$release" | awk '/ Depends: linux-(headers|kbuild)/ { print $2 }')
	fetch "$src" "linux-headers-$release" "${headers[@]}" "linux-source-$series"
	sed -i "s|/usr/src|$src/usr/src|" "$src/usr/src/linux-headers-$release/Makefile"
	mkdir "$src/siw"
	tar -C "$src/siw" --strip-components=5 -xf "$src/usr/src/linux-source-$series.tar.xz" \
		"linux-source-$series/drivers/infiniband/sw/siw"
	# Type information (BTF) would need pahole.
	make -C "$src/usr/src/linux-headers-$release" M="$src/siw" CONFIG_RDMA_SIW=m CONFIG_DEBUG_INFO_BTF_MODULES= modules \
		> "$work/siw.log" 2>&1 || {
		tail -20 "$work/siw.log" >&2
		die "siw does not build for $release"
	}
	install -D -m 644 "$src/siw/siw.ko" "$root/lib/modules/$release/updates/siw.ko"
	depmod -b "$root" "$release"
	rm -rf "$src"
}

make_initrd() {
	local root=$work/initrd module path name
	step "making the initramfs"
	mkdir -p "$root"/{bin,modules}
	cp "$(command -v busybox)" "$root/bin/busybox"
	install -m 755 "$here/guest-boot" "$root/init"
	for module in "${boot_modules[@]}"; do modprobe_in "$kernel" "$module" 2>/dev/null || true; done |
		awk '$1 == "insmod" && !seen[$2]++ { print $2 }' |
		while read -r path; do
			name=$(basename "$path")
			case $name in
			*.xz) xz -dc "$path" ;;
			*.zst) zstd -dcq "$path" ;;
			*.gz) gzip -dc "$path" ;;
			*) cat "$path" ;;
			esac > "$root/modules/${name%%.ko*}.ko"
			echo "${name%%.ko*}.ko" >> "$root/modules/order"
		done
	(cd "$root" && find . | cpio --quiet -o -H newc -R 0:0 | gzip -1) > "$work/initrd.gz"
	mv "$work/initrd.gz" "$initrd"
}

make_keys() {
	step "making ssh keys"
	mkdir -p "$work/keys"
	ssh-keygen -q -t ed25519 -N '' -C verbatim-vm -f "$work/keys/id"
	ssh-keygen -q -t ed25519 -N '' -C verbatim-vm -f "$work/keys/host"
	mv "$work/keys" "$cache/keys"
}

# A /dev/kvm that opens may still not run an ordinary kernel (nested, restricted hosts): believe a boot only.
probe_accel() {
	local found=tcg
	if [ -w /dev/kvm ]; then
		step "trying KVM"
		if (VB_VM_ACCEL=kvm rdma=none limit=10 counted="" run_guest true) > /dev/null 2>&1 9>&-; then found=kvm; fi
	fi
	rm -f "$cache"/accel-*
	echo $found > "$accel_file"
	step "guests run by ${found}"
}
