#!/usr/bin/env bash
# Whether two commits train the same bits: the weights_digest and the loss of every step of the jobs in
# examples/ and of those in bench/digests/jobs.py, cut to four steps.
#
#   bench/digests.sh [--only TEXT] A B
#
# A and B: commits, which are built in worktrees in a temporary folder, or folders of built programs
# (build/bin, whose examples are those of this checkout). --only: jobs that have TEXT in their names.
# A table on standard output. Exits 1 if a job differs, fails, is known to neither, or is refused by one
# though its file is the same; an example that only one commit has, or has so, is passed over.
set -euo pipefail
cd "$(dirname "$0")/.."
only=
if [ "${1:-}" = --only ] && [ $# -gt 1 ]; then
  only=$2
  shift 2
fi
[ $# = 2 ] || { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2; }

folder=$(mktemp -d "${TMPDIR:-/tmp}/stagecoach-digests-XXXXXX")
clean() {
  for side in A B; do
    [ ! -e "$folder/$side" ] || git worktree remove --force "$folder/$side" || true
  done
  rm -rf "$folder"
  git worktree prune
}
trap clean EXIT

programs=() examples=()
for side in A B; do
  if [ -x "$1/stagecoach" ]; then
    echo "$side: $1"
    programs+=("$1") examples+=(examples)
  else
    echo "$side: $(git log -1 --format='%h %s' "$1")"
    git worktree add --quiet --detach "$folder/$side" "$1"
    "$folder/$side/tools/build" release stagecoach stagecoach-coordinator stagecoach-stage >&2
    programs+=("$folder/$side/build/bin") examples+=("$folder/$side/examples")
  fi
  shift
done
bench/digests/digests.py --programs "${programs[@]}" --examples "${examples[@]}" --only "$only"
