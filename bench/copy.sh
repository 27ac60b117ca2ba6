# shellcheck shell=bash disable=SC2317,SC2329,SC2154	# called by their names; build, rounds, lines are bench/run's
# The copy beside its peers, from this host to itself; sourced by bench/run. Each contender is a function copy_NAME SOURCE TARGET, which
# brings a file or a directory there under a new name; sync_NAME does the same where all is there already.
#
# VB_BENCH_ROUNDS (5), VB_BENCH_MIB (4096) for the one file, VB_BENCH_FILES (20000) of 4 KiB, VB_BENCH_EMPTY (1000000) for the memory,
# VB_BENCH_DISK: a directory on the disk ($TMPDIR; empty: without it), where the file is a quarter as large.

copy_mib=${VB_BENCH_MIB:-4096}
copy_files=${VB_BENCH_FILES:-20000}
copy_empty=${VB_BENCH_EMPTY:-1000000}
copy_disk=${VB_BENCH_DISK-${TMPDIR:-/tmp}}
copy_port=17481	# of sshd; the next is rsync's, the one after it nc's
copy_dir='' copy_place='' copy_began='' copy_servers=()

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

# copy_once FUNCTION SOURCE TARGET: prints how many seconds it took
copy_once() {
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

# copy_contest TITLE copy|sync SOURCE TARGET AMOUNT UNIT NAME...: all in turn, some rounds; their seconds stay in $copy_dir/NAME.rounds
copy_contest() {
	local title=$1 kind=$2 source=$3 target=$4 amount=$5 unit=$6 name round seconds
	shift 6
	rm -f "$copy_dir"/*.rounds
	for round in $(seq "$rounds"); do
		for name; do
			[ "$kind" = sync ] || rm -rf "$target"
			copy_once "${kind}_$name" "$source" "$target" >> "$copy_dir/$name.rounds"
			[ "$round" -gt 1 ] || copy_check "$source" "$target" "$name"
		done
	done
	[ "$kind" = sync ] || rm -rf "$target"
	for name; do
		seconds=$(median < "$copy_dir/$name.rounds")
		awk -v t="$title" -v n="$name" -v s="$seconds" -v a="$amount" -v u="$unit" \
			'BEGIN { printf "%-40s %-14s %8.3f s %10.3f %s\n", t, n, s, a / s, u }'
		printf '{"name":"%s","contender":"%s","seconds":%s}\n' "$title" "$name" "$seconds" >> "$lines"
	done
}

# copy_verdict TITLE PEER TARGET: ours must be that many times as fast, by the median of the rounds' ratios
copy_verdict() {
	local ratio verdict
	ratio=$(paste "$copy_dir/$2.rounds" "$copy_dir/ours.rounds" | awk '{ print $1 / $2 }' | median | xargs printf %.2f)
	verdict=$(awk -v r="$ratio" -v t="$3" 'BEGIN { print (r >= t) ? "met" : "MISSED" }')
	printf '%-40s ours is %6s x as fast as %-14s (target >= %s: %s)\n' "$1" "$ratio" "$2" "$3" "$verdict"
	printf '{"name":"%s","peer":"%s","ratio":%s,"target":%s,"verdict":"%s"}\n' "$1" "$2" "$ratio" "$3" "$verdict" >> "$lines"
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
copy_starting() {
	local name seconds
	: > "$copy_place/nothing"
	for name in ssh ours; do
		for _ in $(seq "$rounds"); do
			rm -rf "$copy_place/out"
			copy_once "copy_$name" "$copy_place/nothing" "$copy_place/out" >> "$copy_dir/$name.starts"
		done
		seconds=$(median < "$copy_dir/$name.starts")
		printf '%-40s %-14s %8.3f s\n' "start-up alone" "$name" "$seconds"
		printf '{"name":"start-up alone","contender":"%s","seconds":%s}\n' "$name" "$seconds" >> "$lines"
	done
	rm -rf "$copy_place/nothing" "$copy_place/out"
}

# copy_at PLACE-NAME MIB: everything in $copy_place
copy_at() {
	local title bytes=$(($2 << 20))
	title="$1: one file of $2 MiB"
	head -c "$bytes" /dev/urandom > "$copy_place/file"
	copy_contest "$title" copy "$copy_place/file" "$copy_place/out" "$(awk -v b="$bytes" 'BEGIN { print b / 1e9 }')" GB/s \
		ours scp rsync_ssh rsync_daemon tar_nc cp rdsend
	copy_verdict "$title" scp 3
	copy_verdict "$title" rsync_ssh 3
	copy_verdict "$title" rdsend 0.95
	rm "$copy_place/file"

	title="$1: $copy_files files of 4 KiB"
	copy_tree "$copy_place/tree" "$copy_files" 4096
	copy_contest "$title" copy "$copy_place/tree" "$copy_place/out" "$copy_files" files/s ours scp rsync_ssh rsync_daemon tar_nc cp
	copy_verdict "$title" rsync_daemon 2
	copy_verdict "$title" scp 3
	copy_verdict "$title" cp 0.667

	title="$1: the same, nothing to do"
	cp -a "$copy_place/tree" "$copy_place/out"
	copy_contest "$title" sync "$copy_place/tree" "$copy_place/out" "$copy_files" files/s ours rsync_ssh rsync_daemon
	copy_verdict "$title" rsync_ssh 1
	rm -rf "$copy_place/tree" "$copy_place/out"
}

# ---- memory ---------------------------------------------------------------------------------------------------------

# Both sides' peak of what was resident, as the kernel counted it
copy_memory() {
	local side kib verdict title="memory: $copy_empty empty files"
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
	copy_began=$EPOCHREALTIME
	"$copy_dir/near-rdcp" -aq -F "$copy_dir/ssh/config" --rdcp-path "$copy_dir/far-rdcp" "$copy_place/tree" "far:$copy_place/out"
	awk -v t="$title" -v s="$copy_began" -v e="$EPOCHREALTIME" 'BEGIN { printf "%-40s %.1f s\n", t, e - s }'
	[ "$(find "$copy_place/out" -type f | wc -l)" -eq "$copy_empty" ] || { echo "bench: not all files are there" >&2; return 1; }
	for side in near far; do
		kib=$(cat "$copy_dir/$side.kib")
		verdict=$([ "$kib" -lt 102400 ] && echo met || echo MISSED)
		printf '%-40s %s side: %s MiB  (target < 100: %s)\n' "$title" "$side" "$((kib / 1024))" "$verdict"
		printf '{"name":"%s","side":"%s","KiB":%s,"target":102400,"verdict":"%s"}\n' "$title" "$side" "$kib" "$verdict" >> "$lines"
	done
	rm -rf "$copy_place/tree" "$copy_place/out"
}

bench_copy() {
	copy_dir=$(mktemp -d /dev/shm/vb-bench.XXXXXX)
	copy_place=$copy_dir
	copy_serve
	printf '\n%s\n' "copies to the same host, medians of $rounds; congestion control $(sysctl -n net.ipv4.tcp_congestion_control 2> /dev/null || echo '?')"
	copy_starting
	copy_at tmpfs "$copy_mib"
	copy_memory
	if [ -n "$copy_disk" ]; then
		copy_place=$(mktemp -d "$copy_disk/vb-bench.XXXXXX")
		copy_at disk $((copy_mib / 4))
	fi
	copy_end
}
