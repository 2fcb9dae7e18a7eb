#!/bin/sh
# Two hosts of one kernel behind a link of 20 ms and 10 Mbit/s each way, for `roundtrip load` with a server of your own.
# Run it in a shell of `sudo unshare --net --mount`; leaving the shell removes everything.
# Without netem: tbf rate 10mbit burst 16kb latency 80ms limits the rate alone.
set -e
mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns
ip netns add server && ip netns add users
ip -n server link add wire type veth peer name wire netns users
ip -n server address add 10.9.0.1/24 dev wire
ip -n users address add 10.9.0.2/24 dev wire
for end in server users; do
    ip -n $end link set lo up
    ip -n $end link set wire up
    ip netns exec $end tc qdisc add dev wire root netem delay 20ms rate 10mbit limit 60
done
ip netns exec server roundtrip serve www --listen 10.9.0.1:80 --profile paper &
ip netns exec users roundtrip load http://10.9.0.1/ --plan plan.txt --protocol dhttp
