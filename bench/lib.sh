# shellcheck shell=bash disable=SC2154	# build, rounds, channel are bench/measure's
# The library's own layers beside what they are made of, and beside plain TCP. Sourced by bench/measure.

stream=$build/bench/stream_bench
access=$build/bench/access_bench

bench_lib() { in_like_network lib_alike; }
bench_lib_alike() {
	local a=127.0.0.1
	heading "streams over ofi/tcp on loopback, congestion control $(congestion)"
	contest "1 MiB writes and reads, memory to memory" MB/s higher 0.90 "$stream" bw $a ofi size=1048576 count=2000 \
		-- "channel, depth 8" "$channel" bw $a ofi size=1048576 count=2000 depth=8 from=plain
	contest "1 MiB writes and reads, kept memory" MB/s higher 0.90 "$stream" bw $a ofi size=1048576 count=2000 keep \
		-- "channel, depth 8" "$channel" bw $a ofi size=1048576 count=2000 depth=8 from=plain
	contest "1 MiB, straight into the reader's memory" MB/s higher 1.00 "$stream" bw $a ofi size=1048576 count=2000 \
		-- "the same, copied" "$stream" bw $a ofi size=1048576 count=2000 direct=1
	contest "64 KiB writes and reads" MB/s higher 0.80 "$stream" bw $a ofi size=65536 count=16000 \
		-- "channel, depth 16" "$channel" bw $a ofi size=65536 count=16000 depth=16 from=plain
	contest "64 B writes" 1/s higher 2 "$stream" rate $a ofi size=64 count=3000000 \
		-- "TCP, write(2)" "$stream" rate $a tcp size=64 count=500000
	contest "40 B there and back, half of it" us lower 1.25 "$stream" lat $a ofi size=40 count=20000 \
		-- "channel" "$channel" lat $a ofi size=40 count=20000
}

# rstream_bw SIZE COUNT: MB/s of rsockets, which count both directions, one after the other
rstream_bw() {
	local server result
	rstream -b "$VB_RXE_ADDR" -S "$1" -C "$2" -I 1 > /dev/null 2>&1 &
	server=$!
	sleep 1.5
	result=$(timeout 60 rstream -s "$VB_RXE_ADDR" -S "$1" -C "$2" -I 1 2> /dev/null | awk 'NR > 1 && NF >= 7 {v = $(NF - 1)} END {print v}')
	kill "$server" 2> /dev/null || true
	wait "$server" || true
	awk -v g="${result:-0}" 'BEGIN {printf "%.1f\n", g * 125}'
}

rstream_sizes='65536 1600
262144 600
1048576 200'	# bytes, and how many

# rsockets turn in loops before they sleep (polling_time). On one CPU that might be why they are slow there: `asleep` they do not.
rstream_asleep() {
	local file=/etc/rdma/rsocket/polling_time rc=0
	mkdir -p "${file%/*}"
	echo 0 > "$file"
	rstream_bw "$@" || rc=$?
	rm "$file"
	return $rc
}

bench_lib_one_cpu_inside() {
	local a=$VB_RXE_ADDR size count
	heading "streams over Soft-RoCE in a VM with one CPU"
	while read -r size count; do
		contest "$size B writes and reads, one CPU" MB/s higher 1.3 "$stream" bw "$a" verbs size="$size" count="$count" \
			-- "rstream" rstream_bw "$size" "$count"
		contest "$size B writes and reads, one CPU" MB/s higher 1.3 "$stream" bw "$a" verbs size="$size" count="$count" \
			-- "rstream, asleep" rstream_asleep "$size" "$count"
	done <<< "$rstream_sizes"
}

# With two CPUs the driver does all work of a connection on one of them, and everybody waits for it.
bench_lib_verbs_inside() {
	local a=$VB_RXE_ADDR size count
	heading "streams over Soft-RoCE in a VM with two CPUs"
	while read -r size count; do
		contest "$size B writes and reads" MB/s higher 1.3 "$stream" bw "$a" verbs size="$size" count="$count" \
			-- "rstream" rstream_bw "$size" "$count"
		# How much more than rstream is to be had at all, by whatever moves the bytes
		contest "$size B, bare RDMA writes: ib_write_bw" MB/s higher - write_bw -Q 1 -n "$count" -s "$size" -t 16 \
			-- "rstream" rstream_bw "$size" "$count"
	done <<< "$rstream_sizes"
}

bench_lib_counted_inside() {
	local a=$VB_RXE_ADDR size count
	heading "streams over Soft-RoCE in a VM, $counted_time"
	while read -r size count; do
		contest "$size B writes and reads, one CPU" MB/s higher 1.3 "$stream" bw "$a" verbs size="$size" count="$count" \
			-- "rstream" rstream_bw "$size" "$count"
	done <<- SIZES
	65536 400
	262144 150
	1048576 50
	SIZES
	contest "1 MiB, straight into the reader's memory" MB/s higher 1.00 "$stream" bw "$a" verbs size=1048576 count=50 \
		-- "the same, copied" "$stream" bw "$a" verbs size=1048576 count=50 direct=1
	contest "1 MiB, straight into kept memory" MB/s higher 1.00 "$stream" bw "$a" verbs size=1048576 count=50 keep \
		-- "the same, copied" "$stream" bw "$a" verbs size=1048576 count=50 direct=1
}

# In MB/s, as perftest counts MiB; the atomics in operations a second.
write_bw() { perftest ib_write_bw 4 "$@" | awk '{printf "%.1f\n", $1 * 1.048576}'; }
read_bw() { perftest ib_read_bw 4 "$@" | awk '{printf "%.1f\n", $1 * 1.048576}'; }
atomic_rate() { perftest ib_atomic_bw 5 -A FETCH_AND_ADD "$@" | awk '{printf "%.0f\n", $1 * 1e6}'; }

bench_memory_verbs_inside() {
	local a=$VB_RXE_ADDR size count
	heading "one-sided memory over Soft-RoCE in a VM, 16 under way, polling, $counted_time"
	aside=(chrt --idle 0)
	while read -r size count; do
		contest "put of $size B" MB/s higher 0.95 "$access" put "$a" verbs size="$size" count="$count" spin=1000000 \
			-- "ib_write_bw" write_bw -Q 1 -n "$count" -s "$size" -t 16
		contest "get of $size B" MB/s higher 0.95 "$access" get "$a" verbs size="$size" count="$count" spin=1000000 \
			-- "ib_read_bw" read_bw -Q 1 -n "$count" -s "$size" -t 16 -o 16
	done <<- SIZES
	65536 400
	1048576 40
	SIZES
	contest "fetch and add" 1/s higher 0.90 "$access" add "$a" verbs count=3000 spin=1000000 \
		-- "ib_atomic_bw" atomic_rate -Q 1 -n 3000 -t 16 -o 16
}

bench_memory_verbs() { in_counted_guest memory_verbs_inside; }

bench_lib_verbs() {
	in_guest lib_one_cpu_inside --smp 1
	in_guest lib_verbs_inside
	in_counted_guest lib_counted_inside
}
