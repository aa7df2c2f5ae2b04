# What the benches are made of: starting and ending agents, reading what the kernel counts, and
# printing rows. Sourced, not run.

addr=127.0.0.1:${DROVER_BENCH_PORT:-4799}
# What an agent is told besides where it is.
options=()

fail() { echo "bench: $*" >&2; exit 1; }

# Reads what the script was called with. Whoever asks for something else is shown the head of the script.
quick=false
case ${1:-} in
    '') ;;
    --quick) quick=true ;;
    *) sed -n '2,/^$/s/^# \{0,1\}//p' "bench/${0##*/}"; exit 2 ;;
esac

# runs MANY FEW: how often something is done, or with how many
runs() { if $quick; then echo "$2"; else echo "$1"; fi; }

declare -A found # "AGENT FIGURE" to what was measured

# note FIGURE MEASURED, of the agent whose name is in `who`. Said at once, too: what comes later may fail.
note() {
    found["$who $1"]=$2
    echo "bench: $who: $1 $2" >&2
}

# What the measuring client says.
measured() { "$client" "$@" || fail "$who: $1 was not measured"; }

# nomad_settings DIRECTORY PORT: what all agents of Nomad are told here: where they are, and nothing of others.
nomad_settings() {
    cat << EOF
data_dir             = "$1"
bind_addr            = "127.0.0.1"
log_level            = "WARN"
disable_update_check = true
advertise {
  http = "127.0.0.1"
  rpc  = "127.0.0.1"
  serf = "127.0.0.1"
}
ports {
  http = $2
  rpc  = $(($2 + 1))
  serf = $(($2 + 2))
}
EOF
}

# The program as users get it, the measuring client of that name, and what starts agents.
build() {
    local profile=${DROVER_BENCH_PROFILE:-dist} target
    cargo build --profile "$profile" -q -p drover 2> /dev/null || fail 'cannot build the agent'
    cargo build --release -q -p drover-bench 2> /dev/null || fail 'cannot build the measuring client'
    target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
    client=$target/release/bench-$1 launcher=$target/release/bench-agent program=$target/$profile/drover
}

prepare() {
    [ "$(id -u)" = 0 ] || fail 'needs root'
    # A disk, not memory: bytes and syncs are counted.
    dir=$(mktemp -d "${DROVER_BENCH_DIR:-/var/tmp}/drover-bench.XXXXXX")
    agent=
    trap cleanup EXIT
    trap 'exit 130' INT TERM HUP
    # Its own groups: of the unified tree, which counts CPU time whatever the controllers are, and
    # of the memory controller where that has a tree of its own. Tasks leave both for their own.
    group=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/drover-bench-$$
    mkdir "$group" || fail 'no control groups'
    memory_group=/sys/fs/cgroup/memory
    [ -e "$memory_group/cgroup.procs" ] && memory_group+=/drover-bench-$$ || memory_group=$group
    mkdir -p "$memory_group"
}

# Ends what is left, by pid, tasks first: their helpers would end with them anyway.
cleanup() {
    local code=$? pid
    trap - EXIT
    set +e
    [ -z "$agent" ] || kill -KILL "$agent" 2> /dev/null
    for pid in $(helpers); do
        kill -KILL $(children "$pid") "$pid" 2> /dev/null
    done
    for pid in $(cat "$group/cgroup.procs"); do
        kill -KILL "$pid" 2> /dev/null
    done
    drop_groups
    [ $code = 0 ] || { echo 'bench: the end of the log:'; tail -n 20 "$dir/log"; } >&2
    forget "$dir"
    rmdir "$memory_group" "$group" 2> /dev/null
    exit $code
}

# Removes the control groups of tasks that ended without the agent. Some have processes a moment longer.
drop_groups() {
    local record group left tries
    for tries in $(seq 50); do
        left=
        for record in "$dir"/data/run/*.r; do
            for group in /sys/fs/cgroup/{,*/}drover/"$(basename "$record" .r)"; do
                [ ! -d "$group" ] || rmdir "$group" 2> /dev/null || left=$group
            done
        done
        [ -n "$left" ] || return 0
        sleep 0.1
    done
}

# Runs a command inside the bench's groups. It is of no use to the agent to know.
inside() {
    (
        echo $BASHPID > "$memory_group/cgroup.procs"
        echo $BASHPID > "$group/cgroup.procs"
        exec "$@"
    )
}

# Starts an agent with an empty directory, unless there is one; with a wrapper, if one is given.
# Sets agent (its pid) and answered (microseconds until it answered).
start_agent() {
    read -r agent answered _ < <(inside "$launcher" launch "$addr" "$dir/log" -- "$@" \
        "$program" agent --data-dir "$dir/data" --http "$addr" --log-level warn "${options[@]}")
    [ -n "$agent" ] || fail 'the agent does not start'
    [ $# = 0 ] || agent=$(children "$agent")
}

# The same for one that has tasks of a job to find again. Sets held.
restart_agent() {
    read -r agent answered held < <(inside "$launcher" relaunch "$addr" "$dir/log" "$1" "$2" -- \
        "$program" agent --data-dir "$dir/data" --http "$addr" --log-level warn "${options[@]}")
    [ -n "$agent" ] || fail 'the agent does not start'
}

# Ends the agent and forgets what it knew. No task runs any more.
stop_agent() {
    [ -z "$(helpers)" ] || fail 'tasks run still'
    end_agent TERM
    forget "$dir/data"
}

# Removes a directory, after the secrets of tasks that are mounted in it.
forget() {
    "$launcher" forget "$1"
}

kill_agent() { end_agent KILL; }

end_agent() {
    kill -"$1" "$agent"
    # Not our child, so there is nothing to wait for; a zombie of its parent's is gone enough.
    while [ -e "/proc/$agent/exe" ] && readlink "/proc/$agent/exe" > /dev/null; do sleep 0.01; done
    agent=
}

# Waits until agent and helpers have had nothing to do for a while; not for ever, since Nomad's always
# has.
await_rest() {
    local before after tries=${1:-240}
    after=$(group_cpu)
    while before=$after; sleep 0.5; after=$(group_cpu); [ $((after - before)) -gt 1000 ]; do
        [ $((tries -= 1)) -gt 0 ] || return 0
    done
}

# The helpers of our tasks, by the program they run: the file, or memory that is named after it.
helpers() {
    find /proc -maxdepth 2 -name exe -path '/proc/[0-9]*' -lname "*$dir/data/bin/shim-*" 2> /dev/null \
        | cut -d/ -f3
}

children() { cat /proc/"$1"/task/*/children 2> /dev/null; }

# Sum of fields of a file of "Name: number" lines.
field() {
    local file=$1 sum=0 name value
    shift
    for name; do
        value=$(awk -v name="$name:" '$1 == name { print $2 }' "$file")
        sum=$((sum + value))
    done
    echo $sum
}

# Bytes of memory of a process, shared pages by its share of them.
proportional() { echo $(($(field "/proc/$1/smaps_rollup" Pss) * 1024)); }

# Bytes that a process, and all that it buried, sent to the disk.
written() { field "/proc/$1/io" write_bytes; }

# Microseconds of CPU that agent and helpers took. Tasks have groups of their own.
group_cpu() { awk '$1 == "usage_usec" { print $2 }' "$group/cpu.stat"; }

# CPU of agent and helpers while so many seconds pass, in microseconds.
cpu_of() {
    local cpu0
    cpu0=$(group_cpu)
    sleep "$1"
    echo $(($(group_cpu) - cpu0))
}

group_kernel_memory() {
    cat "$memory_group/memory.kmem.usage_in_bytes" 2> /dev/null \
        || awk '$1 == "kernel" { print $2 }' "$memory_group/memory.stat"
}

median() { printf '%s\n' "$@" | sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

hundredths() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f\n", a / b }'; }

# The middle estimate of a benchmark in criterion's words, in nanoseconds.
criterion() {
    awk -v name="$1" '
        index($0, name) { found = 1 }
        found && match($0, /time: *\[/) {
            split(substr($0, RSTART + RLENGTH), part, " ")
            scale["ps"] = 0.001; scale["ns"] = 1; scale["µs"] = 1000; scale["ms"] = 1000000
            printf "%.1f\n", part[3] * scale[part[4]]
            exit
        }' <<< "$2"
}

# Rows: what, measured, at least, aim; "-" where nothing is asked, or nothing was measured.
header() {
    echo "On $(stat -f -c %T "$dir"), $(nproc) processors, load $(cut -d' ' -f1-3 /proc/loadavg) before."
    row_line 'figure' 'measured' 'at least' 'aim' ''
    row_line ------ -------- -------- --- ''
}

row_line() { printf '%-62s %12s %10s %10s  %s\n' "$@"; }

# row UNIT SCALE DIGITS BETTER WHAT MEASURED LEAST AIM
row() {
    local unit=$1 scale=$2 digits=$3 better=$4 what=$5 measured=$6 least=$7 aim=$8
    show() { [ "$1" = - ] && echo - || awk -v x="$1" -v s="$scale" -v d="$digits" -v u="$unit" 'BEGIN { printf "%.*f%s", d, x / s, u }'; }
    meets() { [ "$1" = - ] || awk -v m="$measured" -v l="$1" -v b="$better" 'BEGIN { exit !(b == "less" ? m <= l : m >= l) }'; }
    local verdict='missed'
    ! meets "$least" || verdict=enough
    ! meets "$aim" || verdict=good
    [ "$least$aim" != -- ] && [ "$measured" != - ] || verdict=
    row_line "$what" "$(show "$measured")" "$(show "$least")" "$(show "$aim")" "$verdict"
}

row_time() { row ' ms' 1000 2 less "$@"; }
row_nanos() { row ' ns' 1 0 less "$@"; }
row_bytes() { if [ "$2" -ge 4194304 ]; then row ' MiB' 1048576 2 less "$@"; else row ' KiB' 1024 1 less "$@"; fi; }
row_rate() { row ' /s' 1 0 more "$@"; }
row_number() { row '' 1 2 less "$@"; }
row_text() { row_line "$1" "$2" "$3" "$4" ''; }
# row_share WHAT USED OUT-OF LEAST AIM, in thousandths of a percent
row_share() { row ' %' 1000 3 less "$1" $(($2 * 100000 / $3)) "$4" "$5"; }
