# shellcheck shell=bash disable=SC2034	# what is set here is used by those who source it
# For tests of rdsend and rdrecv; sourced after tap.sh. By the environment they run elsewhere as well: VB_PIPE_ADDR (127.0.0.1),
# VB_PIPE_ADDR6 (::1), VB_PIPE_FABRIC (ofi), and VB_PIPE_SCALE (1) where things are slow: that many times less is done, and time
# limits are longer.
# What is about the tools rather than the fabric runs over ofi only.
rdsend=$build/tools/rdsend
rdrecv=$build/tools/rdrecv
address=${VB_PIPE_ADDR:-127.0.0.1}
scale=${VB_PIPE_SCALE:-1}
export VB_FABRIC=${VB_PIPE_FABRIC:-ofi}
unset VB_KEY

# natively: and not with a sanitizer either
natively() { [ "$scale" -eq 1 ]; }
patience_s=20
natively || patience_s=60

# refuses STATUS REGEX COMMAND...: one line on stderr that says so, nothing on stdout
refuses() {
	local status=$1 regex=$2
	shift 2
	exits "$status" into refused timeout "$patience_s" "$@" </dev/null
	[ ! -s refused.out ] || fail "it wrote to stdout: $*"
	one_line refused.err
	says refused.err "^rd(send|recv): .*$regex"
}
misused() { refuses 1 "$1.*try 'rd(send|recv) --help'" "${@:2}"; }

# receive ARGUMENT...: an rdrecv at a free port; sets $server, $port
receive() {
	rm -f receiver.err
	start receiver "$rdrecv" -v --bind "$address" "$@"
}

# receive_into COMMAND -- ARGUMENT...: likewise, with a pipe to a command as its stdout; sets $reader, too
receive_into() {
	local reading=()
	while [ "$1" != -- ]; do
		reading+=("$1")
		shift
	done
	rm -f receiver.out
	mkfifo receiver.out
	"${reading[@]}" <receiver.out &
	reader=$!
	receive "${@:2}"
}

# receive_mute ARGUMENT...: likewise, but what it says is a pipe `told`, full as soon as it has said its port
receive_mute() {
	local line
	mkfifo told
	exec {told}<>told
	"$rdrecv" --bind "$address" "$@" 2>told &
	server=$!
	read -r -t "$patience_s" line <&"$told"
	[[ $line =~ port\"?:?\ ([0-9]+) ]]
	port=${BASH_REMATCH[1]}
	head -c 65536 /dev/zero >&"$told"
}

# sends STATUS ARGUMENT...: rdsend to it, with stdin as it is
sends() {
	local status=$1
	shift
	exits "$status" into sender timeout "$patience_s" "$rdsend" "$@"
}

# into NAME COMMAND...: its output goes to NAME.out and .err. The command's alone: what bash says meanwhile of a job
# that was killed does not.
into() {
	"${@:2}" >"$1.out" 2>"$1.err"
}

# send_on ARGUMENT...: the same in the background; sets $sender
send_on() {
	"$rdsend" "$@" <&0 >sender.out 2>sender.err &
	sender=$!
}

# send_held BYTES ARGUMENT...: sends so many of the file `original`, and the rest when there is a file `go`
send_held() {
	rm -f held go
	mkfifo held
	give "$1" >held &
	send_on "${@:2}" <held
}
give() {
	head -c "$1" original
	until [ -e go ]; do
		pause
	done
	tail -c +$(($1 + 1)) original
}

# under_way: until rdrecv has let rdsend in
under_way() { await "$patience_s" grep -Eq '^rdrecv: (ofi|verbs) on ' receiver.err; }

# both_end STATUS: rdsend in the background, and rdrecv
both_end() {
	ends "$1" "$sender"
	ends "$1" "$server"
}

# both_say REGEX: as an error
both_say() {
	says sender.err "^rdsend: .*$1"
	says receiver.err "^rdrecv: .*$1"
}

# make FILE BYTES: of data that is like nothing else
make() {
	[ -e "$work/random" ] || head -c "$([ "$VB_FABRIC" = ofi ] && echo 16M || echo 4M)" /dev/urandom >"$work/random"
	head -c "$2" "$work/random" >"$1"
	[ "$(stat -c %s "$1")" -eq "$2" ] || fail "there is no more"
}

# only_these NAME...: nothing else is in the directory
only_these() {
	local found wanted
	found=$(ls -A)
	wanted=$(printf '%s\n' "$@" | sort)
	[ "$(sort <<<"$found")" = "$wanted" ] || fail "in the directory are:" "$found"
}

# soon MILLISECONDS SINCE: it took no longer
soon() {
	local took=$(($(now_ms) - $2)) limit=$1
	natively || limit=$(($1 * 3))
	[ "$took" -lt "$limit" ] || fail "it took $took ms, not less than $limit"
}

# free_port: sets $port to one that nobody listens on
free_port() {
	receive 0 key
	kill -KILL "$server"
	await 10 gone "$server"
}

# hidden PROCESS: its key is wiped from the process list, so it has begun
hidden() { tr '\0' ' ' <"/proc/$1/cmdline" | grep -q 'rdsend.*\*\*\*'; }
