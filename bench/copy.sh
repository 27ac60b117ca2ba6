# shellcheck shell=bash disable=SC2317,SC2329,SC2154	# called by their names; build, rounds, lines are bench/measure's
# The copy beside its peers, from this host to itself; sourced by bench/measure. Each contender is a function copy_NAME SOURCE TARGET, which
# brings a file or a directory there under a new name; sync_NAME does the same where all is there already.
#
# VB_BENCH_ROUNDS (5), VB_BENCH_MIB (4096) for the one file, VB_BENCH_FILES (20000) of 4 KiB and five times as many, VB_BENCH_EMPTY (1000000) for the memory,
# VB_BENCH_DISK: a directory on the disk ($TMPDIR; empty: without it), where the file is a quarter as large if there is no room.

copy_mib=${VB_BENCH_MIB:-4096}
copy_files=${VB_BENCH_FILES:-20000}
copy_empty=${VB_BENCH_EMPTY:-1000000}
copy_disk=${VB_BENCH_DISK-${TMPDIR:-/tmp}}
copy_port=17481	# of sshd; the next is rsync's, the one after it nc's
copy_dir='' copy_place='' copy_began='' copy_servers=()
declare -A copy_called=([rsync_ssh]="rsync over ssh" [rsync_daemon]="rsync, daemon" [tar_nc]="tar | nc" [cp]="cp -a")	# where a function cannot be called so

# ---- the contenders -------------------------------------------------------------------------------------------------

ssh_with() { echo "ssh -F $copy_dir/ssh/config"; }
contents() { if [ -d "$1" ]; then echo "$1/"; else echo "$1"; fi; }

copy_ours() { "$tools/rdcp" -aq -F "$copy_dir/ssh/config" --rdcp-path "$tools/rdcp" "$1" "far:$2"; }
copy_scp() { scp -rpq -F "$copy_dir/ssh/config" "$1" "far:$2"; }
copy_rsync_ssh() { rsync -a -e "$(ssh_with)" "$(contents "$1")" "far:$2"; }
copy_rsync_daemon() { rsync -a "$(contents "$1")" "rsync://127.0.0.1:$((copy_port + 1))/all$2"; }
copy_cp() { cp -a "$1" "$2"; }
copy_tar_nc() {
	local from=(-C "$(dirname "$1")" "$(basename "$1")") into
	into=(-C "$(dirname "$2")" --transform "s|^$(basename "$1")|$(basename "$2")|")
	nc -l -N 127.0.0.1 $((copy_port + 2)) < /dev/null | tar -x "${into[@]}" &
	until copy_listens $((copy_port + 2)); do sleep 0.01; done
	copy_began=$EPOCHREALTIME
	tar -c "${from[@]}" | nc -N 127.0.0.1 $((copy_port + 2))
	wait $!
}
copy_rdsend() {
	"$tools/rdrecv" -q --fabric ofi --bind 127.0.0.1 $((copy_port + 2)) benchkey "$2" &
	until copy_listens $((copy_port + 2)); do sleep 0.01; done
	copy_began=$EPOCHREALTIME
	"$tools/rdsend" -q --fabric ofi 127.0.0.1 $((copy_port + 2)) benchkey "$1"
	wait $!
}
copy_libfabric() { fi_info -p tcp > /dev/null; }
copy_ssh() { ssh -F "$copy_dir/ssh/config" far true; }
sync_ours() { "$tools/rdcp" -aq --sync -F "$copy_dir/ssh/config" --rdcp-path "$tools/rdcp" "$1/." "far:$2"; }
sync_rsync_ssh() { copy_rsync_ssh "$@"; }
sync_rsync_daemon() { copy_rsync_daemon "$@"; }

copy_listens() { ss -Hltn "sport = :$1" | grep -q .; }

# ---- servers --------------------------------------------------------------------------------------------------------

copy_serve() {
	mkdir -p /run/sshd "$copy_dir/ssh"
	ssh-keygen -q -t ed25519 -N '' -f "$copy_dir/ssh/host"
	ssh-keygen -q -t ed25519 -N '' -f "$copy_dir/ssh/key"
	cat > "$copy_dir/ssh/sshd_config" <<- END
		Port $copy_port
		ListenAddress 127.0.0.1
		HostKey $copy_dir/ssh/host
		AuthorizedKeysFile $copy_dir/ssh/key.pub
		PidFile none
		StrictModes no
		UsePAM no
		PermitRootLogin yes
		Subsystem sftp internal-sftp
	END
	cat > "$copy_dir/ssh/config" <<- END
		Host far
			HostName 127.0.0.1
			Port $copy_port
			IdentityFile $copy_dir/ssh/key
			IdentitiesOnly yes
			StrictHostKeyChecking no
			UserKnownHostsFile /dev/null
			LogLevel ERROR
	END
	cat > "$copy_dir/rsyncd.conf" <<- END
		use chroot = no
		uid = $(id -un)
		gid = $(id -gn)
		[all]
			path = /
			read only = no
	END
	/usr/sbin/sshd -D -f "$copy_dir/ssh/sshd_config" -E "$copy_dir/ssh/log" &
	copy_servers+=($!)
	rsync --daemon --no-detach --config "$copy_dir/rsyncd.conf" --port $((copy_port + 1)) --address 127.0.0.1 > "$copy_dir/rsyncd.log" 2>&1 &
	copy_servers+=($!)
	until copy_listens "$copy_port" && copy_listens $((copy_port + 1)); do
		kill -0 "${copy_servers[@]}" || { cat "$copy_dir/ssh/log" "$copy_dir/rsyncd.log" >&2; return 1; }
		sleep 0.01
	done
}

copy_end() {
	[ ${#copy_servers[@]} -eq 0 ] || kill "${copy_servers[@]}" 2> /dev/null || true
	wait "${copy_servers[@]}" 2> /dev/null || true
	copy_servers=()
	[ -z "$copy_dir" ] || rm -rf "$copy_dir" "${copy_place:?}"
}

# ---- contests -------------------------------------------------------------------------------------------------------

# copy_once FUNCTION SOURCE TARGET: prints how many seconds it took, with nothing left to be written from before
copy_once() {
	sync -f "$copy_place"
	copy_began=$EPOCHREALTIME
	"$1" "$2" "$3" >&2 || { echo "bench: $1 failed" >&2; return 1; }
	awk -v s="$copy_began" -v e="$EPOCHREALTIME" 'BEGIN { printf "%.3f\n", e - s }'
}

# Every contender must bring all over right, or its speed means nothing.
copy_check() {
	if [ -d "$1" ]; then
		[ -z "$(rsync -nrlc --delete --itemize-changes "$1/" "$2/")" ]
	else
		cmp "$1" "$2"
	fi || { echo "bench: $3 did not bring the data over" >&2; return 1; }
}

# copy_contest TITLE copy|sync SOURCE TARGET AMOUNT UNIT NAME[=TARGET]...: all and ours in turn, some rounds; rates are AMOUNT by seconds
copy_contest() {
	local title=$1 kind=$2 source=$3 target=$4 amount=$5 unit=$6 name round seconds to=$4
	shift 6
	rm -f "$copy_dir"/*.rounds
	# One copy that does not count: memory that a virtual machine touches for the first time is slow, and the first contender would pay for all.
	[ "$kind" = sync ] || { copy_cp "$source" "$target"; rm -rf "$target"; }
	for round in $(seq "$rounds"); do
		for name in ours "${@%=*}"; do
			[ "$kind" = sync ] || to=$target.$round.$name
			seconds=$(copy_once "${kind}_$name" "$source" "$to")
			awk -v a="$amount" -v s="$seconds" 'BEGIN { printf "%.5g\n", a / s }' >> "$copy_dir/$name.rounds"
			[ "$round" -gt 1 ] || copy_check "$source" "$to" "$name"
			[ "$kind" = sync ] || copy_stays "$to" || rm -rf "$to"
		done
	done
	rm -rf "$target".*
	for name; do copy_row "$title" "$unit" "$name"; done
}

# Trees on the disk stay until all are done: ext4 looks long for inodes where many were deleted just before.
copy_stays() { [ -d "$1" ] && [ "$copy_place" != "$copy_dir" ]; }

# copy_row TITLE UNIT NAME[=TARGET]
copy_row() {
	local ours=$copy_dir/ours.rounds theirs=$copy_dir/${3%=*}.rounds target=-
	[[ $3 != *=* ]] || target=${3#*=}
	row "$1" "$2" higher "$(median < "$ours")" "${copy_called[${3%=*}]:-${3%=*}}" "$(median < "$theirs")" "$(ratios "$ours" "$theirs")" "$target"
}

# ---- what is copied -------------------------------------------------------------------------------------------------

# copy_tree DIRECTORY FILES BYTES: a hundred to a directory
copy_tree() {
	python3 - "$@" <<- 'END'
		import os, sys
		top, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
		for i in range(count):
		    if i % 100 == 0:
		        os.makedirs(f"{top}/{i // 10000}/{i // 100 % 100}")
		    with open(f"{top}/{i // 10000}/{i // 100 % 100}/{i}", "wb", buffering=0) as file:
		        if size:
		            file.write(os.urandom(size))
	END
}

# What a copy of nothing takes, and of that ssh alone: for small trees it is most of it, and a daemon has it behind itself
copy_start() {
	rm -rf "$copy_place/out"
	copy_once "copy_$1" "$copy_place/nothing" "$copy_place/out"
}

copy_starting() {
	: > "$copy_place/nothing"
	contest "an empty file" s lower - copy_start ours -- "ssh true" copy_start ssh
	# Of the far side's start, what libfabric and the libraries it brings along take before they can be called
	contest "an empty file" s lower - copy_start ours -- "fi_info" copy_start libfabric
	rm -rf "$copy_place/nothing" "$copy_place/out"
}

# copy_at PLACE-NAME MIB: everything in $copy_place
copy_at() {
	local bytes=$(($2 << 20))
	head -c "$bytes" /dev/urandom > "$copy_place/file"
	copy_contest "$1: one file of $2 MiB" copy "$copy_place/file" "$copy_place/out" "$(awk -v b="$bytes" 'BEGIN { print b / 1e9 }')" GB/s \
		scp=3 rsync_ssh=3 rsync_daemon tar_nc cp rdsend=0.95
	rm "$copy_place/file"

	copy_tree "$copy_place/tree" "$copy_files" 4096
	copy_contest "$1: $copy_files files of 4 KiB" copy "$copy_place/tree" "$copy_place/out" "$copy_files" files/s \
		scp=3 rsync_ssh rsync_daemon=2 tar_nc cp=0.667

	cp -a "$copy_place/tree" "$copy_place/out"
	copy_contest "$1: the same, nothing to do" sync "$copy_place/tree" "$copy_place/out" "$copy_files" files/s rsync_ssh=1 rsync_daemon
	rm -rf "$copy_place/tree" "$copy_place/out"
}

# Five times as many, where the start counts for less
copy_many() {
	local files=$((copy_files * 5))
	copy_tree "$copy_place/tree" "$files" 4096
	copy_contest "$1: $files files of 4 KiB" copy "$copy_place/tree" "$copy_place/out" "$files" files/s rsync_daemon cp
	rm -rf "$copy_place/tree"
}

# ---- memory ---------------------------------------------------------------------------------------------------------

# Both sides' peak of what was resident, as the kernel counted it
copy_memory() {
	local side
	for side in near far; do
		cat > "$copy_dir/$side-rdcp" <<- END
			#!/usr/bin/env python3
			import resource, subprocess, sys
			status = subprocess.call(["$tools/rdcp"] + sys.argv[1:])
			open("$copy_dir/$side.kib", "w").write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
			sys.exit(status)
		END
		chmod 755 "$copy_dir/$side-rdcp"
	done
	copy_tree "$copy_place/tree" "$copy_empty" 0
	"$copy_dir/near-rdcp" -aq -F "$copy_dir/ssh/config" --rdcp-path "$copy_dir/far-rdcp" "$copy_place/tree" "far:$copy_place/out"
	[ "$(find "$copy_place/out" -type f | wc -l)" -eq "$copy_empty" ] || { echo "bench: not all files are there" >&2; return 1; }
	for side in near far; do
		row "memory for $copy_empty empty files, $side side" MiB lower "$(awk '{ printf "%.1f", $1 / 1024 }' "$copy_dir/$side.kib")" - - - 100
	done
	rm -rf "$copy_place/tree" "$copy_place/out"
}

# A size in MiB, or a quarter of it where the disk is too full
copy_fitting() {
	if [ "$(df --output=avail -m "$copy_place" | tail -n 1)" -gt $(($1 * 5 / 2)) ]; then echo "$1"; else echo $(($1 / 4)); fi
}

bench_copy() {
	copy_dir=$(mktemp -d /dev/shm/vb-bench.XXXXXX)
	copy_place=$copy_dir
	copy_serve
	heading "copies to the same host, congestion control $(congestion)"
	copy_starting
	copy_at tmpfs "$copy_mib"
	copy_many tmpfs
	copy_memory
	if [ -n "$copy_disk" ]; then
		copy_place=$(mktemp -d "$copy_disk/vb-bench.XXXXXX")
		copy_at disk "$(copy_fitting "$copy_mib")"
	fi
	copy_end
}
