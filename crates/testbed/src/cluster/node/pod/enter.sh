# Becomes a container: called in the pod's network namespace and in mount and host name namespaces of its own.
#
# $1 is an empty folder, $2 the pod's folder, $3 the script to go on with (below the pod's folder), $4 the pod's name; then
# comes the image's program. The container sees this machine's files, but what it writes goes to memory and is gone with
# it; the places where the machine keeps what is private or running are empty.
set -e
cd /
echo "$4" >/proc/sys/kernel/hostname
# As container runtimes do: a container may listen on any port, whoever it runs as.
echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start
mount -t tmpfs -o mode=755 tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/view"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/view"
for folder in proc sys dev; do mount --rbind "/$folder" "$1/view/$folder"; done
# Shared memory has names, too: two that choose the same must not meet, nor leave any on the machine.
if [ -d /dev/shm ]; then mount -t tmpfs -o mode=1777,size=64m tmpfs "$1/view/dev/shm"; fi
for folder in tmp run home root; do
    if [ -d "/$folder" ]; then mount -t tmpfs -o mode=1777 tmpfs "$1/view/$folder"; fi
done
mkdir "$1/view/.pod"
mount --bind "$2" "$1/view/.pod"
: >"$1/view/.program"
mount --bind "$5" "$1/view/.program"
exec chroot "$1/view" /bin/sh "/.pod/$3"
