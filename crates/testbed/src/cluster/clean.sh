# Removes what a cluster left. $1 is its folder, which lists the network namespaces that it made. With "all" as $2 the
# files beside it go too: the lock, which must be held, and the log; and the folder of all clusters, if this was the last.
#
# A process is ended only because it lives in one of those namespaces, so an id that the system gave to somebody else in
# the meantime is never touched. Standard input is read to its end first: a janitor's is held open by the process that
# owns the cluster, and ends with it, however that comes about.
cat >/dev/null

namespaces() {
    while read -r name; do
        if [ -e "/run/netns/$name" ]; then echo "$name"; fi
    done <"$1/namespaces"
}

if [ -r "$1/namespaces" ]; then
    attempts=0
    while [ "$attempts" -lt 100 ]; do
        living=$(namespaces "$1" | while read -r name; do ip netns pids "$name"; done)
        if [ -z "$living" ]; then break; fi
        kill -KILL $living
        sleep 0.1
        attempts=$((attempts + 1))
    done
    namespaces "$1" | while read -r name; do ip netns delete "$name"; done
fi
rm -rf --one-file-system "$1"
if [ "$2" = all ]; then
    rm -f "$1.log" "$1.lock"
    rmdir "$(dirname "$1")" 2>/dev/null || true
fi
