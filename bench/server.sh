# shellcheck shell=bash disable=SC2154	# build is bench/run's
# A server's clients. Sourced by bench/run.

# What silent clients cost, as a server's and as channels of their own, on the serving side
bench_server() {
	printf '\na server over ofi/tcp on loopback\n'
	"$build/bench/server_bench" server 127.0.0.1 ofi clients=1000
	"$build/bench/server_bench" channels 127.0.0.1 ofi clients=1000
}

bench_server_verbs_inside() {
	printf '\na server over Soft-RoCE in a VM\n'
	ulimit -n 20000
	"$build/bench/server_bench" server "$VB_RXE_ADDR" verbs clients=1000 count=2
	"$build/bench/server_bench" channels "$VB_RXE_ADDR" verbs clients=400
}

bench_server_verbs() { in_guest server_verbs_inside; }
