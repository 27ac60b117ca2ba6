# shellcheck shell=bash disable=SC2034	# what is set here is used by those who source it
# For tests of rdcp; sourced after tap.sh. Brings an sshd of its own on loopback, for as long as the script runs: the hosts `far`
# and `far2` of $ssh_config, both this one. rsync, which knows nothing of rdcp, judges the copies.
# VB_PIPE_SCALE as in pipe_kit.sh, of which this is the second floor. VB_COPY_DIR: where to work (else $TMPDIR).
# shellcheck source-path=SCRIPTDIR source=pipe_kit.sh
. "$(dirname "${BASH_SOURCE[0]}")/pipe_kit.sh"
unset VB_FABRIC	# what is chosen by itself is what is tested
rdcp=$build/tools/rdcp
ssh_dir=$work/ssh
ssh_config=$ssh_dir/config
patience_s=$((patience_s * 2))
mark=VB_COPY_TEST=$work	# is in the environment of all far sides
export "${mark?}"
sum() { awk '{ sum += $1 } END { print sum + 0 }'; }
is_root() { [ "$(id -u)" -eq 0 ]; }

# ---- the far side ---------------------------------------------------------------------------------------------------

start_sshd() {
	local sshd
	sshd=$(PATH=$PATH:/usr/sbin command -v sshd) || { echo "1..0 # SKIP no sshd"; exit 0; }
	command -v rsync >/dev/null || { echo "1..0 # SKIP no rsync"; exit 0; }
	mkdir "$ssh_dir"
	! is_root || mkdir -p /run/sshd
	ssh-keygen -q -t ed25519 -N '' -f "$ssh_dir/host"
	ssh-keygen -q -t ed25519 -N '' -f "$ssh_dir/key"
	for _ in {1..20}; do
		ssh_port=$((20000 + SRANDOM % 12000))
		sshd_says "$ssh_port" >"$ssh_dir/sshd_config"
		"$sshd" -f "$ssh_dir/sshd_config" -E "$ssh_dir/log" && await 10 test -s "$ssh_dir/pid" && break
	done
	[ -s "$ssh_dir/pid" ] || { cat "$ssh_dir/log"; echo "Bail out! sshd does not start"; exit 1; }
	ssh_says "$ssh_port" >"$ssh_config"
	# Not killed by tap.sh, whose tests end what they have started: it forks, and so is nobody's job.
	trap 'kill "$(cat "$ssh_dir/pid")" 2>/dev/null; chmod -R u+rwx "$work" 2>/dev/null; rm -rf "$work"' EXIT
}

sshd_says() {	# PORT; what sanitizers are told has to be told there, too
	local set=("$mark") name
	for name in ASAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS TSAN_OPTIONS; do
		[ -z "${!name:-}" ] || set+=("$name=${!name}")
	done
	cat <<-END
		Port $1
		ListenAddress 127.0.0.1
		ListenAddress ::1
		HostKey $ssh_dir/host
		AuthorizedKeysFile $ssh_dir/key.pub
		PidFile $ssh_dir/pid
		StrictModes no
		UsePAM no
		UseDNS no
		PermitRootLogin yes
		PrintMotd no
		PrintLastLog no
		MaxStartups 100
		SetEnv ${set[*]}
	END
}

ssh_says() {	# PORT
	cat <<-END
		Host far far2
			HostName 127.0.0.1
		Host *
			Port $1
			IdentityFile $ssh_dir/key
			IdentitiesOnly yes
			StrictHostKeyChecking no
			UserKnownHostsFile /dev/null
			LogLevel ERROR
			BatchMode yes
	END
}

# rsh_in DIRECTORY [PREFIX...]: writes ./rsh, for -e: runs the far side there without ssh, without a network if the prefix does so.
# Takes what ssh takes, and lets a shell look at the command as ssh does.
rsh_in() {
	local to=$1
	shift
	{
		echo '#!/bin/bash'
		# shellcheck disable=SC2016
		echo 'while [[ $1 == -* ]]; do case $1 in -l | -p | -o | -F | -i | -J) shift 2 ;; *) shift ;; esac; done; shift; [ "$1" != -- ] || shift'
		printf 'cd %q && exec %s bash -c "$*"\n' "$to" "$*"
	} >rsh
	chmod 755 rsh
}

# marked: the processes of this script's copies, here and there
marked() { grep -lszF "$mark" /proc/[0-9]*/environ | cut -d / -f 3; }

# ---- copying --------------------------------------------------------------------------------------------------------

# fares ARGUMENT...: rdcp as a user calls it who has that far side; its output is in copy.out and copy.err. Sets $status, to whatever
# but that of a crash or a time-out.
fares() {
	status=0
	timeout -k 5 "$patience_s" "${as[@]}" "$rdcp" -F "$ssh_config" --rdcp-path "$rdcp" "$@" >copy.out 2>copy.err || status=$?
	[ "$status" -lt 124 ] || [[ $status =~ ^(126|127|255)$ ]] || fail "exit status $status: $*"
}
as=()	# who, or where, if not us and here

# copies STATUS ARGUMENT...: with that status
copies() {
	fares "${@:2}"
	[ "$status" -eq "$1" ] || { tail -n 5 copy.err; fail "exit status $status, not $1: rdcp ${*:2}"; }
}
copy() { copies 0 "$@"; }

# fails ARGUMENT...: with whatever status but success
fails() {
	fares "$@"
	[ "$status" -ne 0 ] || fail "it succeeded: $*"
}

# copy_on ARGUMENT...: the same in the background; sets $copier
copy_on() {
	"$rdcp" -F "$ssh_config" --rdcp-path "$rdcp" "$@" <&0 >copy.out 2>copy.err &
	copier=$!
}

# in_json NAME: the value of that name in what --json said last
in_json() {
	python3 -c 'import json, sys
objects = [json.loads(line) for line in sys.stdin if line.startswith("{")]
print(objects[-1][sys.argv[1]])' "$1" <copy.err
}

# as_nobody: from here on, with ./rsh for -e; skips the test where that cannot be
as_nobody() {
	local nobody
	is_root || skip "needs root"
	nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups env "HOME=$PWD")
	"${nobody[@]}" test -x "$rdcp" 2>/dev/null || skip "nobody may not run $rdcp"
	chmod 711 "$work"
	chmod 777 .
	rsh_in "$PWD"
	as=("${nobody[@]}")
}

# ---- judging --------------------------------------------------------------------------------------------------------

# same SOURCE COPY: directories; in all that -a keeps, to the nanosecond
same() {
	local differences
	differences=$(rsync -naHAXc --modify-window=-1 --delete --itemize-changes "$1/" "$2/" 2>&1) || fail "rsync: $differences"
	[ -z "$differences" ] || fail "$2 is not as $1: $(head -n 20 <<<"$differences" | cut -c 1-200)"
}

# alike SOURCE COPY: in names, types and contents
alike() { diff -r --no-dereference "$1" "$2" >/dev/null || { diff -rq --no-dereference "$1" "$2" | head; fail "$2 is not like $1"; }; }

# nothing_false SOURCE COPY: what stands in COPY under a final name is complete
nothing_false() {
	local top false
	top=$(cd "$1" && pwd)
	false=$(cd "$2" && find . -type f ! -name '.rdcp-*' ! -exec cmp -s "$top/{}" {} \; -print)
	[ -z "$false" ] || fail "not as in $1: $false"
}

# tidy DIRECTORY...: nothing of rdcp's own is left there
tidy() {
	local left
	left=$(find "$@" -name '.rdcp-*')
	[ -z "$left" ] || fail "left behind: $left"
}

silent() { [ ! -s copy.out ] && [ ! -s copy.err ] || { cat copy.out copy.err; fail "it said something"; }; }

# ---- trees ----------------------------------------------------------------------------------------------------------

# small DIRECTORY: one tree with a bit of everything that is simple
small() {
	mkdir -p "$1/sub/deeper" "$1/empty"
	echo one >"$1/one"
	: >"$1/nothing"
	make "$1/sub/two" 300001
	echo three >"$1/sub/deeper/three"
	chmod 755 "$1/one"
}

# many DIRECTORY COUNT BYTES: files of that size, all different, a hundred to a directory
many() {
	python3 - "$@" <<-'END'
		import os, sys
		top, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
		for i in range(count):
		    if i % 100 == 0:
		        os.makedirs(f"{top}/{i // 100:04}")
		    with open(f"{top}/{i // 100:04}/{i}", "wb") as file:
		        file.write((b"%d " % i * size)[:size])
	END
}

# nasty DIRECTORY: all that is difficult, and may be here; what is root's only when we are
nasty() (
	umask 022
	mkdir "$1"
	cd "$1"
	mkdir names types links modes times holes empty empty/empty extended
	nasty_names
	nasty_types
	nasty_links
	nasty_modes
	nasty_holes
	nasty_extended
	! is_root || nasty_owners
	nasty_times
)

odd_names=($'new\nline' $'\n' $'\t' $'\e[31mred\e]0;title\a' $'\r' $'\x01\x7f' '$(touch x)' '`touch x`' '; touch x' '| touch x' -dash --
	-rf ' ' ' in front and behind ' "it's" '"quoted"' $'not UTF-8 \xff\xfe\xc3' 'back\slash' 'back\' '*' '?' '[a]' '~' '~root'
	'#' '%s%n' 'a:b' ':' '...' '.hidden' '..two' '-e sh x' "$(printf 'x%.0s' {1..255})" "$(printf '\xc3\xa9%.0s' {1..127})")

nasty_names() {
	local name
	for name in "${odd_names[@]}"; do
		echo "$name" >"names/$name"
		mkdir "names/in ${name:0:100}"
		echo "$name" >"names/in ${name:0:100}/$name"
	done
}

nasty_types() {
	mkfifo types/fifo
	python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("types/socket")'
	echo target >types/target
	ln -s target types/good
	ln -s ../empty types/directory
	ln -s nowhere types/broken
	ln -s /etc/passwd types/absolute
	ln -s loop types/loop
	ln -s loop2 types/loop1
	ln -s loop1 types/loop2
	ln -s ../../../../../../../../etc types/up
	ln -s $'\e[31m\n$(touch x)' types/odd
	ln -s "$(printf 'x/%.0s' {1..2000})" types/long
	! is_root || ! mknod types/null c 1 3 || mknod types/disk b 259 70000
}

nasty_links() {
	mkdir -p links/a/deep links/b
	echo linked >links/a/one
	ln links/a/one links/b/two
	ln links/a/one links/a/deep/three
	make links/z-large 400001
	ln links/z-large links/a-large
	: >links/empty1
	ln links/empty1 links/b/empty2
	mkfifo links/fifo1
	ln links/fifo1 links/b/fifo2
	ln -s one links/a/symlink1
	ln -P links/a/symlink1 links/b/symlink2
}

file_modes=(0 1 7 44 111 200 400 444 600 777 1755 2755 4755 6711 7777)
directory_modes=("${file_modes[@]}" 500 555)
nasty_modes() {
	local mode
	for mode in "${file_modes[@]}"; do
		echo "$mode" >"modes/$mode"
		chmod "$mode" "modes/$mode"
	done
	for mode in "${directory_modes[@]}"; do
		mkdir -p "modes/d$mode/sub"
		echo "$mode" >"modes/d$mode/file"
		chmod "$mode" "modes/d$mode"
	done
}

nasty_holes() {
	truncate -s 5M holes/all
	truncate -s 3M holes/leading
	echo end >>holes/leading
	echo start >holes/trailing
	truncate -s 3000001 holes/trailing
	make holes/middle 200000
	truncate -s 2M holes/middle
	cat holes/trailing >>holes/middle
	truncate -s 1 holes/tiny
	head -c 300000 /dev/zero >holes/zeros
}

has_xattrs() { : >.probe && setfattr -n user.probe -v x .probe 2>/dev/null && rm .probe; }
has_acls() { : >.probe && setfacl -m u:1234:r .probe 2>/dev/null && rm .probe; }

nasty_extended() {
	local i
	mkdir extended/directory
	echo 1 >extended/many
	echo 2 >extended/listed
	if has_xattrs; then
		for i in {1..20}; do
			setfattr -n "user.number$i" -v "value $i" extended/many
		done
		setfattr -n user.empty extended/many
		setfattr -n user.binary -v 0x00ff0a1b00 extended/many
		setfattr -n user.large -v "$(printf 'x%.0s' {1..1500})" extended/listed
		setfattr -n user.directory -v yes extended/directory
		setfattr -n user.readonly -v yes modes/444
		! is_root || setfattr -n trusted.root -v yes extended/many || true
	fi
	if has_acls; then
		setfacl -m u:1234:rx,g:5678:w,m:rwx extended/listed
		setfacl -m u:1234:rwx -d -m u:4321:rwx,g:5678:r extended/directory
		echo inherits >extended/directory/file
		mkdir extended/directory/sub
		setfacl -b extended/directory/file
	fi
}

nasty_owners() {
	mkdir -p owners
	echo 1 >owners/numbers
	echo 2 >owners/nobody
	echo 3 >owners/setuid
	echo 4 >owners/capable
	ln -s numbers owners/symlink
	chown 12345:54321 owners/numbers
	chown nobody owners/nobody
	chown nobody:54321 owners/setuid owners/capable owners
	chmod 6755 owners/setuid
	chown -h 23456:65432 owners/symlink
	# Capabilities are lost with a change of the owner, so must come after it.
	setfattr -n security.capability -v 0x0100000200200000000000000000000000000000 owners/capable 2>/dev/null || true
}

nasty_times() {
	local name
	mkdir times/directory
	for name in 1901-12-14 1969-12-31T23:59:59.999999999 1970-01-01T00:00:00 1999-01-02T03:04:05.000000001 2001-09-09T01:46:40.123456789 \
		2038-01-19T03:14:08.5 2200-01-01; do
		echo "$name" >"times/$name"
		touch -d "$name UTC" "times/$name"
	done
	ln -s nowhere times/symlink
	touch -h -d '1999-01-02 03:04:05.678 UTC' times/symlink
	touch -d '1960-05-05 05:05:05.55 UTC' times/directory
	find . -depth -type d ! -path './times/*' -exec touch -d '2020-02-02 02:02:02.222222222 UTC' {} +
}

head -c 16M /dev/urandom >"$work/random"	# for make
start_sshd
