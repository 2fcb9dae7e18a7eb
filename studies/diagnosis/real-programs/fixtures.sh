#!/bin/sh
# Makes fixtures/: certificates, SSH keys, pages, a PostgreSQL database; builds the relay and the Go and Java programs.
set -e
cd "$(dirname "$0")"
mkdir -p fixtures/www runs /run/sshd
gcc -O2 -Wall -Wextra -o relay relay.c
(cd programs && javac -d . Server.java && cd goserver && { [ -f go.mod ] || go mod init goserver; } && go build -o ../goserver.bin .)
cd fixtures
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ec.key -out ec.crt -days 3000 -subj /CN=h
names=$(seq -f 'DNS:host%04g.a-rather-long-name.example.org' -s , 0 479)
openssl req -x509 -newkey rsa:2048 -nodes -keyout big.key -out big.crt -days 3000 -subj /CN=h -addext "subjectAltName=$names"
for n in 500 20000 200000 1000000; do head -c $n /dev/zero | tr '\0' x > www/$n.bin; done
[ -f host_key ] || ssh-keygen -q -t ed25519 -N '' -f host_key
[ -f user_key ] || ssh-keygen -q -t ed25519 -N '' -f user_key
if [ ! -d pg ]; then
    mkdir pg && chown postgres pg
    su postgres -c "/usr/lib/postgresql/15/bin/initdb -A trust -D $PWD/pg"
    echo 'host all all 0.0.0.0/0 trust' >> pg/pg_hba.conf
fi
