# shellcheck shell=bash disable=SC2317,SC2329,SC2154,SC2034	# called by their names; variables of bench/measure and bench/pipe.sh, or for them
# Encrypted transfers beside those who do it otherwise, and what encryption costs; sourced by bench/measure after pipe.sh, whose
# contenders are pairs of functions NAME_recv OUT and NAME_send IN. $on stands before every program, for taskset.
sealed_mib=${VB_BENCH_MIB:-4096}
on=()

plain_recv() { exec "${on[@]}" "$tools/rdrecv" -q --fabric ofi --bind "$pipe_at" $pipe_port benchkey "$1"; }
plain_send() { exec "${on[@]}" "$tools/rdsend" -q --fabric ofi "$pipe_at" $pipe_port benchkey "$1"; }
sealed_recv() { plain_recv "$@"; }
sealed_send() { exec "${on[@]}" "$tools/rdsend" -q --encrypt=require --fabric ofi "$pipe_at" $pipe_port benchkey "$1"; }

# What one would put before and behind nc; the key is no secret here.
cipher=(openssl enc -aes-256-ctr -K "$(printf '%064d' 1)" -iv "$(printf '%032d' 2)")
openssl_recv() { nc -l -N "$pipe_at" $pipe_port < /dev/null | "${cipher[@]}" -d > "$1"; }
openssl_send() { "${cipher[@]}" -in "$1" | nc -N "$pipe_at" $pipe_port; }

# What no encrypted transfer can do without, and nothing else: as fast as it gets with this CPU and this OpenSSL.
bare_loop() { "$build/bench/bare_loop" "$1" "$pipe_dir/data"; }

# How long a transfer of nothing takes, in seconds: most of it is libfabric being loaded. It is in all rates of whole runs.
start() {
	local since
	(plain_recv /dev/null) &
	until listening; do sleep 0.01; done
	since=$EPOCHREALTIME
	(sealed_send /dev/null)
	wait
	awk -v s="$since" -v e="$EPOCHREALTIME" 'BEGIN {printf "%.3f\n", e - s}'
}

# rate NAME [CPUS]: GB/s of a contender with the file, into nothing
rate() {
	on=()
	[ $# -lt 2 ] || on=(taskset -c "$2")
	rate_of "$1" file /dev/null
}

# cost NAME CPUS: beside the plain transfer, on these
cost() { contest "$1, on CPU $2" GB/s higher - rate "$1" "$2" -- plain rate plain "$2"; }

bench_sealed() {
	pipe_dir=$(mktemp -d /dev/shm/vb-bench.XXXXXX) pipe_at=127.0.0.1 pipe_fabric=ofi pipe_mib=$sealed_mib
	ssh_options=(-c aes128-gcm@openssh.com)
	prepare_ssh
	head -c "${pipe_mib}M" /dev/urandom > "$pipe_dir/data"
	heading "encrypted, over loopback, $pipe_mib MiB on tmpfs into nothing, congestion control $(congestion)"
	pipe_check sealed openssl ssh
	contest "sealed" GB/s higher 3 rate sealed -- "ssh aes128-gcm" rate ssh
	contest "sealed" GB/s higher 2 rate sealed -- "openssl enc | nc" rate openssl
	contest "bare loop: read, AES-256-GCM, TCP" GB/s higher - bare_loop sealed -- "ssh aes128-gcm" rate ssh
	contest "bare loop: read, AES-256-GCM, TCP" GB/s higher - bare_loop sealed -- "openssl enc | nc" rate openssl
	contest "sealed" GB/s higher - rate sealed -- "bare loop" bare_loop sealed
	contest "plain" GB/s higher - rate plain -- "bare loop, plain" bare_loop plain
	row "sealed, a transfer of nothing" s lower "$(for _ in $(seq "$rounds"); do start; done | median)" - - - -
	cost sealed 0
	[ "$(nproc)" -lt 2 ] || cost sealed 0,1
	ssh_options=()
	rm -rf "$pipe_dir"
}
