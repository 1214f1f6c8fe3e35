/* Ranks on hosts that are really apart: two network namespaces with a pair of veth between them,
 * each with a host name of its own. They train over TCP to the bits of one process; when the link
 * is cut, the launcher ends all within seconds; when it is back, the run goes on. Skipped, visibly,
 * where namespaces may not be made. */
#include "program/ranks_work.h"

/* Names in this shell: A and B, the namespaces, which are the hosts' names as well. */
static int shell(void **state, const char *format, ...) {
    char text[6000], line[8000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(line, sizeof line,
             "cd '%s' && export A=basin%d-a B=basin%d-b PROGRAM='%s' " MPI_WORDS "; %s",
             (const char *)*state, (int)getpid(), (int)getpid(), BASIN_PROGRAM, text);
    int status = system(line);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* What Open MPI calls in place of ssh. */
#define AGENT                                                                                      \
    "printf '#!/bin/sh\\nhost=$1; shift\\ncase $host in *.1) ns=%%s;; *) ns=%%s;; esac\\n"         \
    "exec ip netns exec $ns unshare -u sh -c \"hostname $ns; $*\"\\n' $A $B >agent; "              \
    "chmod +x agent"

static int hosts_new(void **state) {
    if (world_folder(state)) return -1;
    int absent = shell(state, "ip netns add $A 2>/dev/null && ip netns add $B && "
                              "ip link add va netns $A type veth peer name vb netns $B && "
                              "ip -n $A addr add 10.77.0.1/24 dev va && ip -n $A link set lo up && "
                              "ip -n $B addr add 10.77.0.2/24 dev vb && ip -n $B link set lo up && "
                              "ip -n $A link set va up && ip -n $B link set vb up && " AGENT);
    if (absent) shell(state, "touch absent");
    return 0;
}

static int hosts_remove(void **state) {
    shell(state, "for n in $A $B; do ip netns pids $n 2>/dev/null | xargs -r kill -9; "
                 "ip netns del $n 2>/dev/null; done");
    return program_teardown(state);
}

static void need_hosts(void **state) {
    if (shell(state, "test ! -e absent") == 0) return;
    print_message("no network namespaces here\n");
    skip();
}

/* `basin ARGUMENTS` on both hosts, a rank each; what it printed goes to .out and .err. */
#define ON_HOSTS                                                                                   \
    "timeout -s KILL 100 ip netns exec $A unshare -u sh -c \"hostname $A; exec mpirun "            \
    "--mca plm_rsh_agent $PWD/agent --mca btl self,tcp --mca oob_tcp_keepalive_time 2 "            \
    "--mca oob_tcp_keepalive_intvl 1 --mca oob_tcp_keepalive_probes 3 "                            \
    "--host 10.77.0.1,10.77.0.2 -n 2 $PROGRAM %s\" >.out 2>.err"

static void must_end(void **state, int code) {
    char text[4000];
    if (!code) return;
    slurp(text, sizeof text, folder_path(state, ".err"));
    fail_msg("%d: %s", code, text);
}

TEST_WITH(hosts_have_the_bits_of_one, hosts_new, hosts_remove) {
    need_hosts(state);
    must_end(state, shell(state, "$PROGRAM %s >.out 2>.err",
                          IMAGES(3) "--shards 8 -o $PWD/one.safetensors"));
    must_end(state, shell(state, ON_HOSTS, IMAGES(3) "-o $PWD/two.safetensors"));
    same_file(state, "one.safetensors", "two.safetensors");
}

/* The link goes down once the run has saved. */
#define LONG IMAGES(60) "-o $PWD/cut.safetensors --save-every 0 --resume"
TEST_WITH(a_cut_link_ends_all, hosts_new, hosts_remove) {
    need_hosts(state);
    must_end(state, shell(state, "$PROGRAM %s >.out 2>.err",
                          IMAGES(60) "--shards 8 -o $PWD/whole.safetensors"));
    int code = shell(state,
                     "(while [ ! -e cut.safetensors.checkpoint ]; do sleep 0.05; done; "
                     "ip -n $B link set vb down; date +%%s >began) & " ON_HOSTS
                     "; code=$?; date +%%s >ended; exit $code",
                     LONG);
    assert_int_not_equal(code, 0);
    assert_int_equal(shell(state, "[ $(($(cat ended) - $(cat began))) -lt 30 ]"), 0);
    must_end(
        state,
        shell(state,
              "ip netns pids $B | xargs -r kill -9; ip -n $B link set vb up; sleep 1; " ON_HOSTS,
              LONG));
    same_file(state, "whole.safetensors", "cut.safetensors");
}

int main(void) {
    int absent = ranks_absent();
    return absent ? absent : tests_run(NULL, NULL);
}
