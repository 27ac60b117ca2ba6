# shellcheck shell=bash disable=SC2317,SC2329,SC2154,SC2034	# called by their names; variables of bench/measure and its other parts, or for them
# Compressed transfers beside those who do it otherwise, and beside not doing it: over loopback, and over a link of 1 Gbit/s;
# sourced by bench/measure after sealed.sh and pipe.sh, whose contenders are pairs of functions NAME_recv OUT and NAME_send IN.
packed_mib=${VB_BENCH_MIB:-2048}

packed_recv() { plain_recv "$@"; }
packed_send_with() { exec "${far[@]}" "$tools/rdsend" -q "${@:2}" --fabric ofi "$pipe_at" "$pipe_port" benchkey "$1"; }
auto_recv() { packed_recv "$@"; }
auto_send() { packed_send_with "$1" -z; }
level_recv() { packed_recv "$@"; }
level_send() { packed_send_with "$1" --compress=3 --encrypt=require; }
both_recv() { packed_recv "$@"; }
both_send() { packed_send_with "$1" -z --encrypt=require; }

# What one would put before and behind nc, at pzstd's own level, which is 3.
pzstd_recv() { nc -l -N "$pipe_at" "$pipe_port" < /dev/null | "${cipher[@]}" -d | pzstd -q -d -c > "$1"; }
pzstd_send() { pzstd -q -c "$1" | "${cipher[@]}" | nc -N "$pipe_at" "$pipe_port"; }

# flow OPTION...: GB/s of rdsend with these while the data flows, without the start of the programs, which is the same for all
flow() {
	(packed_recv /dev/null) &
	until listening; do sleep 0.01; done
	"${far[@]}" "$tools/rdsend" --json "$@" --fabric ofi "$pipe_at" "$pipe_port" benchkey "$pipe_dir/data" 2>&1 |
		sed -n 's/.*"summary".*"bytes_per_s": \([0-9]*\).*/\1/p' | awk '{printf "%.3f\n", $1 / 1e9}'
	wait
}

# What there is plenty of wherever programs are built: headers. Repeated, but no block sees the one before.
make_text() {
	find /usr/include -name '*.h' -type f -print0 | sort -z | xargs -0 cat > "$pipe_dir/headers"
	while cat "$pipe_dir/headers"; do :; done 2> /dev/null | head -c "${pipe_mib}M" > "$pipe_dir/data"
	rm "$pipe_dir/headers"
}

# A link of so many Mbit/s to a namespace of its own, where the sender is.
link_ns=vb-bench-link
link_up() {
	link_down
	ip netns add $link_ns &&
		ip link add vb-bench0 type veth peer name vb-bench1 netns $link_ns &&
		ip addr add 198.18.7.1/30 dev vb-bench0 && ip link set vb-bench0 up &&
		ip -n $link_ns addr add 198.18.7.2/30 dev vb-bench1 && ip -n $link_ns link set vb-bench1 up && ip -n $link_ns link set lo up &&
		tc -n $link_ns qdisc add dev vb-bench1 root tbf rate "$1mbit" burst 256k latency 50ms
}
link_down() {
	ip link del vb-bench0 2> /dev/null || true
	ip netns del $link_ns 2> /dev/null || true
}

bench_packed_link() {
	if ! link_up 1000 2> /dev/null; then
		echo "a link of 1 Gbit/s: not measured, it takes root, ip netns and tc"
		link_down
		return
	fi
	pipe_at=198.18.7.1 far=(ip netns exec "$link_ns") pipe_mib=$((packed_mib / 4))
	truncate -s "${pipe_mib}M" "$pipe_dir/data"
	heading "compressed, over a link of 1 Gbit/s, $pipe_mib MiB of text into nothing"
	contest "-z" GB/s higher 2 flow -z -- "plain" flow
	contest "-z -e" GB/s higher 2 flow -z -e -- "plain" flow
	contest "-z -e" GB/s higher 2 rate both -- "ssh -C" rate ssh
	head -c "${pipe_mib}M" /dev/urandom > "$pipe_dir/data"
	contest "-z, on random data" GB/s higher 0.95 flow -z -- "plain" flow
	link_down
	far=()
}

bench_packed() {
	pipe_dir=$(mktemp -d /dev/shm/vb-bench.XXXXXX) pipe_at=127.0.0.1 pipe_fabric=ofi pipe_mib=$packed_mib
	ssh_options=(-C)
	prepare_ssh
	make_text
	heading "compressed, over loopback, $pipe_mib MiB of text on tmpfs into nothing"
	pipe_check auto level both pzstd
	contest "-z -e" GB/s higher 2 rate both -- "pzstd|openssl|nc" rate pzstd
	# The same zstd on the same CPUs: what is around it must not be in its way.
	contest "--compress=3 -e, as hard as pzstd" GB/s higher 0.75 rate level -- "pzstd|openssl|nc" rate pzstd
	contest "-z" GB/s higher 0.95 flow -z -- "plain" flow
	head -c "${pipe_mib}M" /dev/urandom > "$pipe_dir/data"
	contest "-z, on random data" GB/s higher 0.95 flow -z -- "plain" flow
	make_text
	bench_packed_link
	ssh_options=()
	rm -rf "$pipe_dir"
}
