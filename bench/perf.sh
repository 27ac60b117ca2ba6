# shellcheck shell=bash disable=SC2154	# build is bench/measure's
# rdperf beside perftest: the same operation, size, depth and count, in turn in one boot. Sourced by bench/measure.

rdperf=$build/tools/rdperf

# measured MEMBER FACTOR ARGUMENT...: one member of rdperf's row, times FACTOR
measured() {
	local member=$1 factor=$2
	shift 2
	timeout 60 "$rdperf" --fabric verbs --json "$@" "$VB_RXE_ADDR" |
		sed -n "s/.*\"$member\": \([0-9.]*\).*/\1/p" | awk -v f="$factor" '{printf "%.2f\n", $1 * f}'
}
measured_bw() { measured bytes_per_s 0.000001 --bw "$@"; }
measured_rate() { measured messages_per_s 1 --bw "$@"; }
measured_lat() { measured latency_median_us 1 --lat "$@"; }

# Medians of perftest's, which are its "typical"; 512 receives, as rdperf has.
typical() { perftest "$1" 5 "${@:2}"; }

serve_perf() {
	"$rdperf" --serve --fabric verbs --bind "$VB_RXE_ADDR" 2> /dev/null &
	server=$!
}

end_perf() {
	kill -INT "$server"
	wait "$server" || true
}

# sends POLL|EVENT SIZE DEPTH COUNT
sends() {
	local flag=()
	[ "$1" = poll ] || flag=(-e)
	contest "send $2 B, depth $3, $1" MB/s higher 0.95 measured_bw --op send --size "$2" --depth "$3" -n "$4" "--$1" \
		-- "ib_send_bw ${flag[*]}" perftest_bw "${flag[@]}" -Q 1 -n "$4" -s "$2" -t "$3" -r 512
}

# Where both sides turn in loops each needs a CPU, and the real clock.
bench_perf_inside() {
	local server
	heading "rdperf over Soft-RoCE in a VM, polling"
	serve_perf
	sends poll 65536 16 1000
	sends poll 1048576 4 100
	contest "send 64 B, latency, poll" us lower 1.05 measured_lat --op send --size 64 -n 2000 \
		-- "ib_send_lat" typical ib_send_lat -n 2000 -s 64
	contest "write 64 B, latency" us lower 1.05 measured_lat --op write --size 64 -n 2000 \
		-- "ib_write_lat" typical ib_write_lat -n 2000 -s 64
	end_perf
}

bench_perf_counted_inside() {
	local server size depth count
	heading "rdperf over Soft-RoCE in a VM, $counted_time"
	serve_perf
	while read -r size depth count; do
		aside=()
		sends event "$size" "$depth" "$count"
		aside=(chrt --idle 0)
		contest "write $size B, depth $depth" MB/s higher 0.95 measured_bw --op write --size "$size" --depth "$depth" -n "$count" \
			-- "ib_write_bw" write_bw -Q 1 -n "$count" -s "$size" -t "$depth"
		contest "read $size B, depth $depth" MB/s higher 0.95 measured_bw --op read --size "$size" --depth "$depth" -n "$count" \
			-- "ib_read_bw" read_bw -Q 1 -n "$count" -s "$size" -t "$depth" -o 16
	done <<- SIZES
	65536 16 400
	1048576 4 40
	SIZES
	contest "fetch_add, depth 16" 1/s higher 0.95 measured_rate --op fetch_add --depth 16 -n 3000 \
		-- "ib_atomic_bw" atomic_rate -Q 1 -n 3000 -t 16 -o 16
	aside=()
	contest "send 64 B, latency, event" us lower 1.05 measured_lat --op send --size 64 -n 1000 --event \
		-- "ib_send_lat -e" typical ib_send_lat -e -n 1000 -s 64
	end_perf
}

bench_perf() {
	in_counted_guest perf_counted_inside
	in_guest perf_inside
}
