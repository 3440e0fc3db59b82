# A bridge on the host, and for each node a network namespace with one cable to it. A process that sleeps holds the namespace, so
# that nothing is written to /run/netns and a node keeps its address while it is killed and started again.

host_address=10.99.$number.1
bridge=bykube$number
mark=benchyard-kubernetes-$number

address_of() { case $1 in node-a) echo "10.99.$number.11" ;; node-b) echo "10.99.$number.12" ;; esac; }
pods_of() { case $1 in node-a) echo "10.$((240 + number)).1.0/24" ;; node-b) echo "10.$((240 + number)).2.0/24" ;; esac; }
cable_of() { echo "bykube$number-${1#node-}"; }
other_node() { case $1 in node-a) echo node-b ;; node-b) echo node-a ;; esac; }

inside_network() { local node=$1 pid; shift; pid=$(recorded "$node-network") && nsenter --net="/proc/$pid/ns/net" "$@"; }

has_own_network() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }

lay_network() {
  local node
  ip link add "$bridge" type bridge
  ip addr add "$host_address/24" dev "$bridge"
  ip link set "$bridge" up
  # Docker drops what is forwarded, and bridged packets pass the same chain.
  iptables -w 30 -I FORWARD -i "$bridge" -o "$bridge" -m comment --comment "$mark" -j ACCEPT
  for node in $nodes; do
    start "$node-network" unshare --net sleep infinity
    wait_until 10 has_own_network "$(recorded "$node-network")"
    ip link add "$(cable_of "$node")" type veth peer name eth0 netns "$(recorded "$node-network")"
    ip link set "$(cable_of "$node")" master "$bridge" up
    inside_network "$node" ip addr add "$(address_of "$node")/24" dev eth0
    inside_network "$node" ip link set lo up
    inside_network "$node" ip link set eth0 up
    set_routes "$node"
  done
}

set_routes() {  # to the other node's pods, and from the host to this node's
  inside_network "$1" ip route replace default via "$host_address"
  inside_network "$1" ip route replace "$(pods_of "$(other_node "$1")")" via "$(address_of "$(other_node "$1")")"
  ip route replace "$(pods_of "$1")" via "$(address_of "$1")" dev "$bridge"
}

cut() { ip link set "$(cable_of "$1")" down; say "$1 is cut off; its processes live on"; }

heal() { ip link set "$(cable_of "$1")" up; set_routes "$1"; say "$1 is connected"; }

remove_network() {
  local node
  for node in $nodes; do
    ip link del "$(cable_of "$node")" 2>/dev/null || true
    end KILL "$node-network"
  done
  ip link del "$bridge" 2>/dev/null || true                        # its routes go with it
  while iptables -w 30 -D FORWARD -i "$bridge" -o "$bridge" -m comment --comment "$mark" -j ACCEPT 2>/dev/null; do :; done
}
