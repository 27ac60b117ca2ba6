# shellcheck shell=bash disable=SC2154	# build, work are bench/measure's
# A server's clients. Sourced by bench/measure.

# server_rows ADDRESS FABRIC CLIENTS ECHOES: what silent clients cost, as a server's and as channels of their own, on the serving side
server_rows() {
	heading "a server with $3 clients over $2"
	"$build/bench/server_bench" server "$1" "$2" clients="$3" count="$4" > "$work/server"
	"$build/bench/server_bench" channels "$1" "$2" clients="$3" > "$work/channels"
	server_row "a silent client's memory" KiB resident "$3 channels"
	[ "$2" != verbs ] || server_row "a silent client's pinned memory" KiB pinned "$3 channels"
	server_row "a silent client's descriptors" "" descriptors "$3 channels"
	server_row "CPU for all of them while silent" % silent
	server_row "memory of one that was talked to" KiB resident_after
	row "echoes, one client after the other" 1/s higher "$(server_said echoes server)" - - - -
}

server_said() { sed -n "s/^$1 //p" "$work/$2"; }

# server_row NAME UNIT WORD [PEER]
server_row() {
	if [ $# -lt 4 ]; then
		row "$1" "$2" lower "$(server_said "$3" server)" - - - -
		return
	fi
	server_said "$3" server > "$work/ours"
	server_said "$3" channels > "$work/theirs"
	row "$1" "$2" lower "$(cat "$work/ours")" "$4" "$(cat "$work/theirs")" "$(ratios "$work/ours" "$work/theirs")" -
}

bench_server() { server_rows 127.0.0.1 ofi 1000 20; }

# Fewer: an emulated guest has enough to do with their keepalives.
bench_server_verbs_inside() {
	ulimit -n 20000
	server_rows "$VB_RXE_ADDR" verbs 400 2
}

bench_server_verbs() { in_guest server_verbs_inside; }
