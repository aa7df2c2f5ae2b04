# The table with a column for what an agent of Nomad did in the same run. Sourced, not run, after lib.sh.

# "AGENT FIGURE" to a remark, or "AGENT GROUP" to why no figure named GROUP.… was measured.
declare -A remarks

# figure UNIT SCALE DIGITS BETTER KEY WHAT LEAST AIM
figure() {
    local ours=${found["drover $5"]:--} theirs=${found["nomad $5"]:--}
    local shown=- ratio=-
    if [ "$theirs" != - ]; then
        shown=$(awk -v x="$theirs" -v s="$2" -v d="$3" -v u="$1" 'BEGIN { printf "%.*f%s", d, x / s, u }')
        [ "$ours" = - ] || ratio=$(awk -v o="$ours" -v t="$theirs" 'BEGIN { printf "%.2f", o / (t ? t : 1) }')
    fi
    printf -v nomad_column '%12s %7s%s' "$shown" "$ratio" "$(remark drover "$5" "$ours")$(remark nomad "$5" "$theirs")"
    row "$1" "$2" "$3" "$4" "$6" "$ours" "$7" "$8"
}

# Whether an agent is measured.
is_there() { [ "$1" = drover ] || command -v nomad > /dev/null; }

# remark AGENT KEY MEASURED: what is to be said of a figure beside its number
remark() {
    local text=${remarks["$1 $2"]:-}
    is_there "$1" || return 0
    [ "$3" != - ] || text=${text:-${remarks["$1 ${2%%.*}"]:-not measured}}
    [ -z "$text" ] || echo "  $1: $text"
}

row_line() {
    local line
    printf -v line '%-58s %12s %10s %10s %-7s' "$@"
    echo "$line $nomad_column"
}
