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

# once NAME IN OUT: prints "GB/s cpu-seconds-per-GiB", or nothing if either side failed
once() {
	local name=$1 in=$2 out=$3 start end pid failed=''
	peer_out=$out
	make_ready "$out"
	cpu_seconds "$pipe_dir/recv.cpu" eval "(${name}_recv '$out')" &
	pid=$!
	until listening; do sleep 0.01; done
	sleep 0.1
	start=$EPOCHREALTIME
	if [ "$in" = pipe ]; then
		cat "$pipe_dir/data" | cpu_seconds "$pipe_dir/send.cpu" eval "(${name}_send -)" || failed="$failed sender"
	else
		cpu_seconds "$pipe_dir/send.cpu" eval "(${name}_send '$pipe_dir/data')" || failed="$failed sender"
	fi
	if [ "$name" = ssh ]; then pkill -P "$pid" sshd 2> /dev/null || pkill -f "$pipe_dir/sshd_config"; fi
	[ "$name" = ssh ] && end=$EPOCHREALTIME
	wait "$pid" 2> /dev/null || [ "$name" = ssh ] || failed="$failed receiver"
	[ "$name" = ssh ] || end=$EPOCHREALTIME
	rm -f "$pipe_dir/warm"
	[ -z "$failed" ] || { echo "bench: $name:$failed failed" >&2; return; }
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
			[ -s "$pipe_dir/once" ] || { failures=$((failures + 1)); return; }
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

# Both ends' peaks, as the kernel counted them: resident, and pinned for a device
pipe_memory() {
	local sender receiver pid
	ours_recv /dev/null & receiver=$!
	sleep 2
	{ cat "$pipe_dir/data"; sleep 0.5; } | ours_send - & sender=$!
	while kill -0 $sender 2> /dev/null; do
		for pid in $sender $receiver; do
			# A process that has just ended has no such lines.
			awk '/^VmHWM|^VmPin/ {v[$1] = $2} END {if (length(v) == 2) printf "%.1f %.1f\n", v["VmHWM:"] / 1024, v["VmPin:"] / 1024}' \
				"/proc/$pid/status" >> "$pipe_dir/peak.$pid" 2> /dev/null || true
		done
		sleep 0.05
	done
	wait
	memory_rows rdsend "$pipe_dir/peak.$sender"
	memory_rows rdrecv "$pipe_dir/peak.$receiver"
}
memory_rows() {
	row "memory of $1, at most" MiB lower "$(largest 1 "$2")" - - - -
	row "pinned memory of $1, at most" MiB lower "$(largest 2 "$2")" - - - -
}
largest() { sort -g -k "$1,$1" "$2" | awk -v f="$1" 'END {print $f}'; }

# What a pipe by itself carries, with nothing behind it: no contender that reads from one can be faster by much. In GB/s, as the others.
bare_pipe() { cat "$pipe_dir/data" | cat > /dev/null; }
bare_cp() { cp "$pipe_dir/data" "$pipe_dir/out"; }
# Only the file's making: nothing is read, hashed or sent.
bare_dd() { dd if=/dev/zero of="$pipe_dir/out" bs=512K count=$((pipe_mib * 2)) status=none; }
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
rate_of() { once "$@" | cut -d' ' -f1; }

# What no transfer of a file into a file can do without, and nothing else
bare_loop_into() {
	make_ready "$1"
	"$build/bench/bare_loop" hashed "$pipe_dir/data" "$1"
	rm -f "$pipe_dir/warm"
}

# pipe_size MIB: makes the data so long
pipe_size() {
	local have=0
	pipe_mib=$1
	[ ! -f "$pipe_dir/data" ] || have=$(($(stat -c %s "$pipe_dir/data") >> 20))
	if [ "$have" -lt "$1" ]; then head -c $(($1 - have))M /dev/urandom >> "$pipe_dir/data"; else truncate -s "$1M" "$pipe_dir/data"; fi
}

pipe_begin() {
	pipe_dir=$(mktemp -d /dev/shm/vb-bench.XXXXXX)
	pipe_at=127.0.0.1 pipe_fabric=ofi
}

pipe_into_null() {	# PEER...: further ones
	pipe_contest "file into /dev/null" file /dev/null nc=1.2 socat=1.2 mbuffer=1.2 socat-cubic "$@"
	pipe_contest "pipe into /dev/null" pipe /dev/null nc=1.2 socat=1.2 mbuffer=1.2 socat-cubic "$@"
}

pipe_into_file() {
	local what="file of $pipe_mib MiB into file"
	pipe_contest "$what" file "$pipe_dir/out" socat=1.2 socat-cubic nc mbuffer
	contest "$what" GB/s higher - rate_of ours file "$pipe_dir/out" -- "cp, no network" timed bare_cp "$pipe_dir/out"
	contest "$what" GB/s higher - rate_of ours file "$pipe_dir/out" -- "bare loop" bare_loop_into "$pipe_dir/out"
}

bench_pipe() {
	local whole=$pipe_mib
	pipe_begin
	prepare_ssh
	heading "the pipe over loopback, $whole MiB on tmpfs, congestion control $(congestion)"
	pipe_size $((whole / 8))
	pipe_check ours nc socat socat-cubic mbuffer ssh
	pipe_size "$whole"
	pipe_into_null ssh
	contest "pipe into /dev/null" GB/s higher - rate_of ours pipe /dev/null -- "cat | cat, no network" timed bare_pipe /dev/null
	contest "file into /dev/null" GB/s higher - rate_of ours file /dev/null -- "iperf3, no file" iperf3_rate
	pipe_size $((whole / 2)) # there must be room for it twice
	pipe_into_file
	# How much more than socat is to be had at all
	contest "zeros into file, by dd, no network" GB/s higher - timed bare_dd "$pipe_dir/out" -- socat rate_of socat file "$pipe_dir/out"
	contest "bare loop: read, XXH3, TCP, write" GB/s higher - bare_loop_into "$pipe_dir/out" -- socat rate_of socat file "$pipe_dir/out"
	contest "bare loop: read, XXH3, TCP, write" GB/s higher - bare_loop_into "$pipe_dir/out" -- socat-cubic rate_of socat-cubic file "$pipe_dir/out"
	pipe_size $((whole / 8)) # where starting the programs counts most
	pipe_contest "file of $pipe_mib MiB into /dev/null" file /dev/null socat nc
	pipe_memory
	rm -rf "$pipe_dir"
}

# Where both ends have CPUs enough, as on two hosts
pipe_wide_cpus=8
bench_pipe_wide() {
	local whole=$pipe_mib
	pipe_begin
	heading "the pipe over loopback on $(nproc) CPUs, $whole MiB on tmpfs, congestion control $(congestion)"
	pipe_size $((whole / 8))
	pipe_check ours nc socat socat-cubic mbuffer
	pipe_size "$whole"
	pipe_into_null
	pipe_size $((whole / 2))
	pipe_into_file
	pipe_memory
	rm -rf "$pipe_dir"
}

rcopy_recv() { exec rcopy -p $pipe_port > /dev/null 2>&1; }
rcopy_send() { exec rcopy "$1" "$pipe_at:$peer_out" -p $pipe_port > /dev/null; }

# In the guest: no TCP port to look at, and rcopy's server goes on for ever.
once_rxe() {
	local name=$1 out=$2 pid start end failed=''
	peer_out=$out
	make_new "$out"
	"${name}_recv" "$out" &
	pid=$!
	sleep 2
	start=$EPOCHREALTIME
	("${name}_send" "$pipe_dir/data") || failed=sender
	[ "$name" = rcopy ] && { end=$EPOCHREALTIME; kill $pid; }
	wait $pid 2> /dev/null || [ "$name" = rcopy ] || failed="$failed receiver"
	[ "$name" = rcopy ] || end=$EPOCHREALTIME
	cmp -s "$pipe_dir/data" "$out" || failed="$failed data"
	[ -z "$failed" ] || { echo "bench: $name: $failed failed" >&2; return; }
	awk -v s="$start" -v e="$end" -v mib="$pipe_mib" 'BEGIN {printf "%.1f\n", mib * 1.048576 / (e - s)}'
}

ours_rxe() { once_rxe ours "$1"; }
rcopy_rxe() { once_rxe rcopy "$1"; }

# While the data flows, as ib_send_bw counts: neither starting the programs nor their connections.
ours_flowing() {
	ours_recv "$1" &
	sleep 2
	"$tools/rdsend" --json --fabric "$pipe_fabric" "$pipe_at" $pipe_port benchkey "$pipe_dir/data" 2>&1 | bytes_per_s
	wait
}
bytes_per_s() { sed -n 's/.*"summary".*"bytes_per_s": \([0-9]*\).*/\1/p' | awk '{printf "%.1f\n", $1 / 1e6}'; }

bench_pipe_verbs_inside() {
	pipe_dir=$(mktemp -d /dev/shm/vb-bench.XXXXXX) pipe_at=$VB_RXE_ADDR pipe_fabric=verbs
	local whole=${VB_BENCH_MIB:-1024}
	pipe_size "$whole"
	heading "the pipe over Soft-RoCE in a VM, $pipe_mib MiB on tmpfs"
	contest "file into /dev/null, while data flows" MB/s higher 0.90 ours_flowing /dev/null \
		-- "ib_send_bw -e" perftest_bw -e -Q 1 -n $((pipe_mib * 4)) -s 262144 -t 8 -r 8
	contest "file into file, the sender's whole run" MB/s higher 1.5 ours_rxe "$pipe_dir/out" -- rcopy rcopy_rxe "$pipe_dir/out"
	# How much more than rcopy is to be had at all, by whatever moves the bytes
	contest "bare messages, no file: ib_send_bw -e" MB/s higher - perftest_bw -e -Q 1 -n $((pipe_mib * 4)) -s 262144 -t 8 -r 8 \
		-- rcopy rcopy_rxe "$pipe_dir/out"
	pipe_size $((whole / 8)) # where starting the programs counts most
	contest "file of $pipe_mib MiB into file, the sender's whole run" MB/s higher - ours_rxe "$pipe_dir/out" -- rcopy rcopy_rxe "$pipe_dir/out"
	pipe_memory
	rm -rf "$pipe_dir"
}

# ---- from one guest to another: each has a CPU of its own, as two hosts have ----

vm=$here/tests/vm/vm
far_data=/dev/shm/data far_out=/dev/shm/out

# in_host1 MIB COMMAND: runs it there, prints the MB/s of so many MiB in its whole run
in_host1() {
	# shellcheck disable=SC2016	# it expands there
	"$vm" ssh 1 'start=$EPOCHREALTIME; { '"$2"'; } > /dev/null || exit; end=$EPOCHREALTIME
		awk "BEGIN {printf \"%.1f\\n\", '"$1"' * 1.048576 / ($end - $start)}"'
}
same_there() { [ "$("$vm" ssh 1 "cksum < $far_data")" = "$("$vm" ssh 2 "cksum < $far_out")" ]; }

# between RECEIVE SEND: of a file into a file; RECEIVE is started at host2, and ended if it goes on
between() {
	local server rate
	"$vm" ssh 2 "rm -f $far_out; exec timeout 120 $1" > /dev/null 2>&1 &
	server=$!
	sleep 2
	rate=$(in_host1 "$pipe_mib" "timeout 100 $2") || rate=''
	"$vm" ssh 2 "pkill rcopy" || true
	wait "$server" || true
	same_there || { echo "bench: $2: the data did not arrive" >&2; return; }
	echo "$rate"
}
ours_between() {
	between "$tools/rdrecv -q --fabric verbs $pipe_port benchkey $far_out" "$tools/rdsend -q --fabric verbs host2 $pipe_port benchkey $far_data"
}
rcopy_between() { between "rcopy -p $pipe_port" "rcopy $far_data host2:$far_out -p $pipe_port"; }
ours_flowing_between() {
	"$vm" ssh 2 "exec timeout 120 $tools/rdrecv -q --fabric verbs $pipe_port benchkey /dev/null" &
	sleep 2
	"$vm" ssh 1 "timeout 100 $tools/rdsend --json --fabric verbs host2 $pipe_port benchkey $far_data 2>&1" | bytes_per_s
	wait
}
send_bw_between() {
	local options="-d rxe0 -R -e -Q 1 -n $((pipe_mib * 4)) -s 262144 -t 8 -r 8"
	"$vm" ssh 2 "exec timeout 120 ib_send_bw $options" > /dev/null 2>&1 &
	sleep 2
	"$vm" ssh 1 "timeout 100 ib_send_bw $options host2" | awk '/^ *[0-9]+ +[0-9]+/ {printf "%.1f\n", $4 * 1.048576}'
	wait
}

bench_pipe_between() {
	local guest
	pair_run=$(mktemp -d)
	local -x VB_VM_RUN=$pair_run
	"$vm" pair start --rdma rxe --mem 3072 || return
	for guest in 1 2; do
		"$vm" ssh $guest "uname -r; nproc; sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1" >> "$work/guests"
	done
	pipe_mib=${VB_BENCH_MIB:-512}
	"$vm" ssh 1 "head -c ${pipe_mib}M /dev/urandom > $far_data"
	heading "the pipe over Soft-RoCE from one VM to another, $pipe_mib MiB on tmpfs"
	contest "file into file, the sender's whole run" MB/s higher 1.5 ours_between -- rcopy rcopy_between
	contest "file into /dev/null, while data flows" MB/s higher 0.90 ours_flowing_between -- "ib_send_bw -e" send_bw_between
	"$vm" pair stop
	pair_run=''
}
# Half of the memory is for files, which are there twice.
bench_pipe_verbs() {
	in_guest pipe_verbs_inside --mem 6144 --timeout 1800
	bench_pipe_between
}
