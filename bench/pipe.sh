# shellcheck shell=bash disable=SC2317,SC2329,SC2154,SC2002	# called by their names; build, rounds, lines are bench/measure's; a pipe is meant
# The pipe beside its peers; sourced by bench/measure. Each contender is a pair of functions NAME_recv OUT and
# NAME_send IN, where IN is a file or - for a pipe into its stdin, and OUT is a file or /dev/null.

pipe_mib=${VB_BENCH_MIB:-8192}
pipe_port=17471
tools=$build/tools

ssh_options=()	# further ones, for other benches
far=()		# before what sends: where it runs
ours_recv() { exec "$tools/rdrecv" -q --fabric "$pipe_fabric" --bind "$pipe_at" $pipe_port benchkey "$1"; }
ours_send() { exec "$tools/rdsend" -q --fabric "$pipe_fabric" "$pipe_at" $pipe_port benchkey "$1"; }
nc_recv() { exec nc -l -N "$pipe_at" $pipe_port > "$1" < /dev/null; }
nc_send() { if [ "$1" = - ]; then exec nc -N "$pipe_at" $pipe_port; else exec nc -N "$pipe_at" $pipe_port < "$1"; fi; }
socat_recv() { exec socat -b 1048576 -u "TCP-LISTEN:$pipe_port,bind=$pipe_at,reuseaddr${2:-}" "OPEN:$1,creat,trunc"; }
socat_send() {
	if [ "$1" = - ]; then exec socat -b 1048576 -u STDIN "TCP:$pipe_at:$pipe_port${2:-}"
	else exec socat -b 1048576 -u "OPEN:$1,rdonly" "TCP:$pipe_at:$pipe_port${2:-}"; fi
}
# With what ours chooses by itself between two addresses of one host; the others have the system's.
socat-cubic_recv() { socat_recv "$1" ,setsockopt-string=6:13:cubic; }
socat-cubic_send() { socat_send "$1" ,setsockopt-string=6:13:cubic; }
mbuffer_recv() { exec mbuffer -q -s 256k -m 64M -I "$pipe_at:$pipe_port" -f -o "$1" 2> /dev/null; }
mbuffer_send() {
	if [ "$1" = - ]; then exec mbuffer -q -s 256k -m 64M -O "$pipe_at:$pipe_port" 2> /dev/null
	else exec mbuffer -q -s 256k -m 64M -i "$1" -O "$pipe_at:$pipe_port" 2> /dev/null; fi
}
ssh_recv() { exec /usr/sbin/sshd -D -e -f "$pipe_dir/sshd_config" -p $pipe_port 2> /dev/null; }
ssh_send() {
	local ssh=("${far[@]}" ssh -q "${ssh_options[@]}" -p "$pipe_port" -i "$pipe_dir/key" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null
		"$pipe_at" "cat > $peer_out")
	if [ "$1" = - ]; then "${ssh[@]}"; else "${ssh[@]}" < "$1"; fi
}
cp_recv() { :; }

# ssh needs a server: one of our own, with keys of its own.
prepare_ssh() {
	ssh-keygen -q -t ed25519 -N '' -f "$pipe_dir/host" && ssh-keygen -q -t ed25519 -N '' -f "$pipe_dir/key" || return
	mkdir -p /run/sshd
	cat > "$pipe_dir/sshd_config" <<- CONFIG
		HostKey $pipe_dir/host
		AuthorizedKeysFile $pipe_dir/key.pub
		StrictModes no
		PidFile none
		UsePAM no
		PermitRootLogin yes
	CONFIG
}

listening() { ss -Hltn "sport = :$pipe_port" | grep -q .; }

# seconds COMMAND...: user and system time of it and its children, as one number, into a file
cpu_seconds() {
	local TIMEFORMAT='%U %S' file=$1
	shift
	{ time "$@" 2>&3; } 3>&2 2> "$file"
}

# For each the target is new. Else who overwrites it would have its pages at once, and only ours, which keeps what was there until all has come,
# would need fresh ones.
make_new() { [ ! -f "$1" ] || rm "$1"; }

# make_ready OUT: likewise for memory. A machine that is a guest may give what is freed to its host at once, in pieces of 2 MiB; it comes back
# slowly, a page at a time. So as much as the target needs is taken, and freed but for a page of each such piece.
make_ready() {
	make_new "$1"
	[ "$1" != /dev/null ] || return 0
	head -c "${pipe_mib}M" /dev/zero > "$pipe_dir/warm"
	python3 -c "$free_in_pieces" "$pipe_dir/warm"
}
free_in_pieces='
import ctypes, os, sys
c, piece, page = ctypes.CDLL(None), 2 << 20, 4096
with open(sys.argv[1], "r+") as file:
    for at in range(0, os.fstat(file.fileno()).st_size, piece):
        if c.fallocate64(file.fileno(), 3, ctypes.c_long(at + page), ctypes.c_long(piece - page)) != 0:
            sys.exit("bench: cannot free a piece of memory")
'

# once NAME IN OUT: prints "GB/s cpu-seconds-per-GiB"
once() {
	local name=$1 in=$2 out=$3 start end pid
	peer_out=$out
	make_ready "$out"
	cpu_seconds "$pipe_dir/recv.cpu" eval "(${name}_recv '$out')" &
	pid=$!
	until listening; do sleep 0.01; done
	sleep 0.1
	start=$EPOCHREALTIME
	if [ "$in" = pipe ]; then
		cat "$pipe_dir/data" | cpu_seconds "$pipe_dir/send.cpu" eval "(${name}_send -)" || echo "$name failed" >&2
	else
		cpu_seconds "$pipe_dir/send.cpu" eval "(${name}_send '$pipe_dir/data')" || echo "$name failed" >&2
	fi
	if [ "$name" = ssh ]; then pkill -P "$pid" sshd 2> /dev/null || pkill -f "$pipe_dir/sshd_config"; fi
	[ "$name" = ssh ] && end=$EPOCHREALTIME
	wait "$pid" 2> /dev/null || true
	[ "$name" = ssh ] || end=$EPOCHREALTIME
	rm -f "$pipe_dir/warm"
	cat "$pipe_dir/send.cpu" "$pipe_dir/recv.cpu" 2> /dev/null | awk -v s="$start" -v e="$end" -v mib="$pipe_mib" '
		{cpu += $1 + $2} END {printf "%.3f %.2f\n", mib * 1048576 / (e - s) / 1e9, cpu / mib * 1024}'
}

# pipe_contest SCENARIO IN OUT NAME[=TARGET]...: all and ours in turn, several rounds
pipe_contest() {
	local scenario=$1 in=$2 out=$3 name
	shift 3
	rm -f "$pipe_dir"/*.rate "$pipe_dir"/*.use
	for _ in $(seq "$rounds"); do
		for name in ours "${@%=*}"; do
			once "$name" "$in" "$out" > "$pipe_dir/once"
			cut -d' ' -f1 "$pipe_dir/once" >> "$pipe_dir/$name.rate"
			cut -d' ' -f2 "$pipe_dir/once" >> "$pipe_dir/$name.use"
		done
	done
	for name; do pipe_row "$scenario" GB/s higher rate "$name"; done
	for name; do pipe_row "$scenario, CPU of both ends" s/GiB lower use "${name%=*}"; done
}

# pipe_row SCENARIO UNIT higher|lower KIND NAME[=TARGET]: of the files NAME.KIND
pipe_row() {
	local ours=$pipe_dir/ours.$4 name=${5%=*} target=-
	[[ $5 != *=* ]] || target=${5#*=}
	row "$1" "$2" "$3" "$(median < "$ours")" "$name" "$(median < "$pipe_dir/$name.$4")" "$(ratios "$ours" "$pipe_dir/$name.$4")" "$target"
}

# Every contender must bring the bytes over right, or its speed means nothing.
pipe_check() {
	local name
	for name; do
		rm -f "$pipe_dir/out"
		once "$name" file "$pipe_dir/out" > /dev/null
		cmp "$pipe_dir/data" "$pipe_dir/out" || { echo "bench: $name did not bring the data over" >&2; return 1; }
		rm -f "$pipe_dir/out"
	done
}

# Both ends' peaks, as the kernel counted them
pipe_memory() {
	local side pid p
	"$tools/rdrecv" -q --fabric ofi --bind "$pipe_at" $pipe_port benchkey /dev/null & pid=$!
	until listening; do sleep 0.01; done
	{ cat "$pipe_dir/data"; sleep 0.5; } | "$tools/rdsend" -q --fabric ofi "$pipe_at" $pipe_port benchkey & side=$!
	while kill -0 $side 2> /dev/null; do
		for p in $side $pid; do
			awk '/^VmHWM/ {printf "%.1f\n", $2 / 1024}' "/proc/$p/status" > "$pipe_dir/mem" 2> /dev/null || true
			[ ! -s "$pipe_dir/mem" ] || cp "$pipe_dir/mem" "$pipe_dir/peak.$p"
		done
		sleep 0.05
	done
	wait
	row "memory of rdsend, at most" MiB lower "$(cat "$pipe_dir/peak.$side")" - - - -
	row "memory of rdrecv, at most" MiB lower "$(cat "$pipe_dir/peak.$pid")" - - - -
}

# What a pipe by itself carries, with nothing behind it: no contender that reads from one can be faster by much. In GB/s, as the others.
bare_pipe() { cat "$pipe_dir/data" | cat > /dev/null; }
bare_cp() { cp "$pipe_dir/data" "$pipe_dir/out"; }
timed() {	# FUNCTION OUT
	local start
	make_ready "$2"
	start=$EPOCHREALTIME
	"$1"
	rm -f "$pipe_dir/warm"
	awk -v s="$start" -v e="$EPOCHREALTIME" -v mib="$pipe_mib" 'BEGIN {printf "%.3f\n", mib * 1048576 / (e - s) / 1e9}'
}
iperf3_rate() {
	iperf3 -s -1 -p $pipe_port > /dev/null &
	until listening; do sleep 0.01; done
	iperf3 -c "$pipe_at" -p $pipe_port -t 3 -J | awk '/"sum_received"/ {f = 1} f && /bits_per_second/ {gsub(/,/, ""); printf "%.3f\n", $2 / 8e9; exit}'
	wait
}
ours_rate() { once ours "$1" "$2" | cut -d' ' -f1; }

# pipe_size MIB: makes the data so long
pipe_size() {
	local have=0
	pipe_mib=$1
	[ ! -f "$pipe_dir/data" ] || have=$(($(stat -c %s "$pipe_dir/data") >> 20))
	if [ "$have" -lt "$1" ]; then head -c $(($1 - have))M /dev/urandom >> "$pipe_dir/data"; else truncate -s "$1M" "$pipe_dir/data"; fi
}

bench_pipe() {
	pipe_dir=$(mktemp -d /dev/shm/vb-bench.XXXXXX)
	pipe_at=127.0.0.1 pipe_fabric=ofi
	local whole=$pipe_mib
	prepare_ssh
	heading "the pipe over loopback, $whole MiB on tmpfs, congestion control $(congestion)"
	pipe_size $((whole / 8))
	pipe_check ours nc socat socat-cubic mbuffer ssh
	pipe_size "$whole"
	pipe_contest "file into /dev/null" file /dev/null nc=1.2 socat=1.2 mbuffer=1.2 socat-cubic ssh
	pipe_contest "pipe into /dev/null" pipe /dev/null nc=1.2 socat=1.2 mbuffer=1.2 socat-cubic ssh
	contest "pipe into /dev/null" GB/s higher - ours_rate pipe /dev/null -- "cat | cat, no network" timed bare_pipe /dev/null
	contest "file into /dev/null" GB/s higher - ours_rate file /dev/null -- "iperf3, no file" iperf3_rate
	pipe_size $((whole / 2)) # there must be room for it twice
	pipe_contest "file of $pipe_mib MiB into file" file "$pipe_dir/out" socat=1.2 socat-cubic nc mbuffer
	contest "file of $pipe_mib MiB into file" GB/s higher - ours_rate file "$pipe_dir/out" -- "cp, no network" timed bare_cp "$pipe_dir/out"
	pipe_size $((whole / 8)) # where starting the programs counts most
	pipe_contest "file of $pipe_mib MiB into /dev/null" file /dev/null socat nc
	pipe_memory
	rm -rf "$pipe_dir"
}

rcopy_recv() { exec rcopy -p $pipe_port > /dev/null 2>&1; }
rcopy_send() { exec rcopy "$1" "$pipe_at:$peer_out" -p $pipe_port > /dev/null; }

# In the guest: no TCP port to look at, and rcopy's server goes on for ever.
once_rxe() {
	local name=$1 out=$2 pid start end
	peer_out=$out
	make_new "$out"
	"${name}_recv" "$out" &
	pid=$!
	sleep 2
	start=$EPOCHREALTIME
	("${name}_send" "$pipe_dir/data") || echo "$name failed" >&2
	[ "$name" = rcopy ] && { end=$EPOCHREALTIME; kill $pid; }
	wait $pid 2> /dev/null || true
	[ "$name" = rcopy ] || end=$EPOCHREALTIME
	cmp -s "$pipe_dir/data" "$out" || [ "$out" = /dev/null ] || echo "bench: $name did not bring the data over" >&2
	awk -v s="$start" -v e="$end" -v mib="$pipe_mib" 'BEGIN {printf "%.1f\n", mib * 1.048576 / (e - s)}'
}

ours_rxe() { once_rxe ours "$1"; }
rcopy_rxe() { once_rxe rcopy "$1"; }

# While the data flows, as ib_send_bw counts: neither starting the programs nor their connections.
ours_flowing() {
	ours_recv "$1" &
	sleep 2
	"$tools/rdsend" --json --fabric "$pipe_fabric" "$pipe_at" $pipe_port benchkey "$pipe_dir/data" 2>&1 |
		sed -n 's/.*"summary".*"bytes_per_s": \([0-9]*\).*/\1/p' | awk '{printf "%.1f\n", $1 / 1e6}'
	wait
}

bench_pipe_verbs_inside() {
	pipe_dir=$(mktemp -d /dev/shm/vb-bench.XXXXXX) pipe_at=$VB_RXE_ADDR pipe_fabric=verbs
	local whole=${VB_BENCH_MIB:-1024}
	pipe_size "$whole"
	heading "the pipe over Soft-RoCE in a VM, $pipe_mib MiB on tmpfs"
	contest "file into /dev/null, while data flows" MB/s higher 0.90 ours_flowing /dev/null \
		-- "ib_send_bw -e" perftest_bw -e -Q 1 -n $((pipe_mib * 4)) -s 262144 -t 8 -r 8
	contest "file into file, the sender's whole run" MB/s higher 1.5 ours_rxe "$pipe_dir/out" -- rcopy rcopy_rxe "$pipe_dir/out"
	pipe_size $((whole / 8)) # where starting the programs counts most
	contest "file of $pipe_mib MiB into file, the sender's whole run" MB/s higher - ours_rxe "$pipe_dir/out" -- rcopy rcopy_rxe "$pipe_dir/out"
	rm -rf "$pipe_dir"
}

# Half of the memory is for files, which are there twice.
bench_pipe_verbs() { in_guest pipe_verbs_inside --mem 6144 --timeout 1800; }
