"""Programs for the profiles that allow processes and files: what becomes harmless there, what must still be contained,
and honest programs that need them."""

from dataclasses import dataclass, field

from runner.sandbox.limits import MIB, Allow, Limits
from tests.sandbox.programs import Hostile, Ordinary

_WITH_PROCESSES = """
fork fork_bomb vfork_raw clone_raw posix_spawn subprocess_run os_system libc_system exec_suid multiprocessing_pool
process_pool_executor double_fork_daemon kill_everybody semaphore_posix executable_memory
stem_clone stem_clone_flood stem_kill_siblings
"""
_WITH_FILES = """
disk_fill disk_tempfile disk_o_tmpfile disk_inodes disk_sparse disk_pycache symlink sqlite_shelve_dbm cwd_private
inner_handles
"""
PERMITTED = {Allow.PROCESSES: frozenset(_WITH_PROCESSES.split()), Allow.FILES: frozenset(_WITH_FILES.split())}
"""Hostile programs whose attempt is just what the profile allows; they must still leave nothing behind."""

STOPS_ITSELF = frozenset({"stem_kill_siblings"})
"""Permitted to signal its own group, it stops itself in its first milliseconds and stays so until its wall-clock limit."""
STOPPED_WALL_S = 5.0


def permitted(name: str, allow: Allow) -> bool:
    return any(name in names for wanted, names in PERMITTED.items() if wanted in allow)


HOSTILE_PROFILES = [
    Hostile(
        "profile_respawners",
        "processes that fork anew whenever they are alone, in sessions of their own",
        """
import signal
for n in range(1, 65):
    try: signal.signal(n, signal.SIG_IGN)
    except (OSError, ValueError): pass
for _ in range(8):
    if os.fork() == 0:
        os.setsid()
        while True:
            try:
                if os.fork(): os._exit(0)
                os.setsid()
            except OSError: pass
while True: pass
""",
        must="time_limit",
    ),
    Hostile(
        "profile_memory_of_all",
        "stay below the limit in each of many processes",
        """
import time
for _ in range(6):
    if os.fork() == 0: break
a = bytearray(b'x' * (40 << 20))
time.sleep(4)
""",
        must="memory_limit",
    ),
    Hostile(
        "profile_cpu_of_all",
        "burn the CPU seconds of many processes, none of which uses many itself",
        """
for _ in range(40):
    if (pid := os.fork()) == 0:
        end = sum(os.times()[:2]) + 0.05
        while sum(os.times()[:2]) < end: pass
        os._exit(0)
    os.waitpid(pid, 0)
""",
        must="time_limit",
    ),
    Hostile(
        "profile_daemon",
        "leave a process behind that closes everything and waits",
        """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 100)
        import time
        time.sleep(1000)
""",
    ),
    Hostile(
        "profile_signals",
        "signal the runner, the parent and everybody from a forked process",
        """
import signal
runner, supervisor = {{RUNNER_PID}}, os.getppid()
if os.fork() == 0:
    for pid in (runner, supervisor, 1):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP, 0):
            attempt('kill %d %d' % (pid, number), os.kill, pid, number)
    os._exit(0)
os.wait()
""",
    ),
    Hostile(
        "profile_exec_reads",
        "have another program read secrets",
        """
import subprocess
for command in (['cat', '{{SECRET_FILE}}'], ['ls', '{{SECRET_DIR}}'], ['cat', '/proc/{{RUNNER_PID}}/environ'], ['env']):
    try: out = subprocess.run(command, capture_output=True).stdout
    except OSError: continue
    if b'CANARY' in out or b'answers' in out or b'canary' in out: breach(command, out[:80])
""",
    ),
    Hostile(
        "profile_exec_suid",
        "become somebody else through setuid programs",
        """
import subprocess
for command in (['su', '-c', 'id -u'], ['passwd', '-S'], ['mount'], ['newgrp', 'root']):
    try: out = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=1).stdout
    except (OSError, subprocess.TimeoutExpired): continue
    if out.strip() == b'0': breach(command, out)
if b'NoNewPrivs:\\t0' in subprocess.run(['cat', '/proc/self/status'], capture_output=True).stdout: breach('privileges')
""",
    ),
    Hostile(
        "profile_namespaces",
        "a forked process unshares, traces its sibling, reads its memory",
        """
CLONE_NEWUSER = 0x10000000
attempt('unshare', syscall, 272, CLONE_NEWUSER)
attempt('clone', syscall, 56, CLONE_NEWUSER | 17, 0, 0, 0, 0)
pid = os.fork()
if pid == 0:
    import time; time.sleep(0.3); os._exit(0)
attempt('ptrace', syscall, 101, 16, pid, 0, 0)
attempt('process_vm_readv', syscall, 310, pid, 0, 0, 0, 0, 0)
attempt('mem', open, '/proc/%d/mem' % pid)
os.waitpid(pid, 0)
""",
    ),
    Hostile(
        "profile_network",
        "a forked or executed process opens sockets",
        """
import socket, subprocess
if os.fork() == 0:
    for family in range(1, 20):
        attempt('socket %d' % family, socket.socket, family)
    attempt('connect', socket.create_connection, ('127.0.0.1', {{PORT}}), 0.5)
    os._exit(0)
os.wait()
""",
    ),
    Hostile(
        "profile_write_outside",
        "write, link, rename and truncate outside the working directory",
        """
for path in ('/tmp/evil', '/dev/shm/evil', '/etc/evil', '../evil', '{{SECRET_DIR}}/evil', '/var/tmp/evil', '/evil'):
    attempt('write', open, path, 'w')
    attempt('mkdir', os.mkdir, path)
open('own', 'w').close()
attempt('rename', os.rename, 'own', '../moved')
attempt('link out', os.link, 'own', '../linked')
attempt('link in', os.link, '{{SECRET_FILE}}', 'inside', ok=lambda r: open('inside').read())
attempt('truncate', os.truncate, '{{SECRET_FILE}}', 0)
os.symlink('{{SECRET_FILE}}', 'pointer')
attempt('through a link', open, 'pointer')
attempt('write through a link', open, 'pointer', 'w')
attempt('chmod', os.chmod, '{{SECRET_FILE}}', 0o777)
attempt('device', os.mknod, 'device', 0o060666, 0x700)
attempt('fifo', os.mkfifo, 'fifo')
""",
    ),
    Hostile(
        "profile_disk_flood",
        "fill the disk with many files, none of them large",
        "n = 0\nwhile True:\n    with open('f%d' % n, 'wb') as f: f.write(b'x' * 900_000)\n    n += 1\n",
        # crashed: the disk was full before the files were counted; memory_limit: in a control group of its own, what the
        # kernel has not written yet counts as memory
        must="output_limit crashed memory_limit",
    ),
    Hostile(
        "profile_disk_hidden",
        "hide files from being counted and from being removed",
        """
import time
os.mkdir('deep'); os.chdir('deep')
for n in range(300):
    os.mkdir('d' * 200); os.chdir('d' * 200)
    open('f', 'w').write('x' * 1000)
os.mkdir('closed'); open('closed/f', 'w').close(); os.chmod('closed', 0)
time.sleep(0.3)
""",
        must="output_limit finished crashed",  # crashed: a shared user id may not change modes
    ),
    Hostile(
        "profile_leftover_files",
        "find what the test before has left in the working directory",
        "if os.listdir('.'): breach(os.listdir('.'))\nopen('left', 'w').write('x')\nos.mkdir('folder')\n",
    ),
]

BOTH = Limits(cpu_s=8.0, wall_s=20.0, memory_bytes=512 * MIB, allow=Allow.PROCESSES | Allow.FILES)


@dataclass(frozen=True)
class Needs(Ordinary):
    """An honest program that needs a profile."""

    limits: Limits = field(default=BOTH)


_FORK = "import multiprocessing as mp\ndef square(n): return n * n\n"
ORDINARY_PROFILES = [
    Needs("profile_pool", _FORK + "with mp.Pool(3) as pool: print(sum(pool.map(square, [1, 2, 3])) - 8)"),
    Needs(
        "profile_pool_imap", _FORK + "with mp.Pool(2) as pool: print(sum(pool.imap_unordered(square, range(50), 5)) - 40419)"
    ),
    Needs(
        "profile_process_and_queue",
        "import multiprocessing as mp\ndef work(q, n): q.put(n)\nq = mp.Queue()\n"
        "ps = [mp.Process(target=work, args=(q, n)) for n in (1, 2, 3)]\nfor p in ps: p.start()\n"
        "print(sum(q.get() for _ in ps))\nfor p in ps: p.join()",
    ),
    Needs(
        "profile_shared_value",
        "import multiprocessing as mp\nv, a = mp.Value('i', 0), mp.Array('d', 4)\ndef work(n):\n    for _ in range(100):\n"
        "        with v.get_lock(): v.value += 1\n    a[n] = n\n"
        "ps = [mp.Process(target=work, args=(n,)) for n in range(4)]\n"
        "for p in ps: p.start()\nfor p in ps: p.join()\nprint(int(sum(a)) if v.value == 400 else v.value)",
    ),
    Needs(
        "profile_synchronisation",
        "import multiprocessing as mp\ne, b, s, r = mp.Event(), mp.Barrier(2), mp.BoundedSemaphore(2), mp.RLock()\n"
        "def work():\n    e.wait(); b.wait()\n    with r, r, s: pass\n"
        "p = mp.Process(target=work); p.start()\ne.set(); b.wait()\np.join()\n"
        "s.acquire(); s.acquire()\nprint(6 if not s.acquire(timeout=0.05) and p.exitcode == 0 else 0)",
    ),
    Needs(
        "profile_executor",
        "from concurrent.futures import ProcessPoolExecutor\ndef double(n): return 2 * n\n"
        "with ProcessPoolExecutor(2) as pool: print(sum(pool.map(double, [1, 2])))",
    ),
    Needs(
        "profile_pipe_and_terminate",
        "import multiprocessing as mp, time\ndef work(c):\n    c.send(6); time.sleep(60)\na, b = mp.Pipe()\n"
        "p = mp.Process(target=work, args=(b,)); p.start()\nprint(a.recv())\np.terminate(); p.join()",
    ),
    Needs(
        "profile_fork_and_wait", "import os\nif os.fork() == 0: os._exit(6)\nprint(os.waitstatus_to_exitcode(os.wait()[1]))"
    ),
    Needs("profile_subprocess", "import subprocess\nprint(subprocess.check_output(['echo', '6'], text=True), end='')"),
    Needs("profile_shell", "import os\nprint(os.popen('expr 2 + 4').read(), end='')"),
    Needs("profile_file", "with open('out.txt', 'w') as f: f.write('6')\nprint(open('out.txt').read())"),
    Needs(
        "profile_temporary_files",
        "import tempfile, shutil, pathlib\nwith tempfile.TemporaryDirectory() as d:\n"
        "    p = pathlib.Path(d, 'x'); p.write_text('6')\n"
        "    shutil.copyfile(p, 'copy'); print(pathlib.Path('copy').read_text())",
    ),
    Needs(
        "profile_sqlite",
        "import sqlite3\nc = sqlite3.connect('db')\nc.execute('create table t(n)')\n"
        "c.executemany('insert into t values(?)', [(1,), (5,)])\nc.commit()\n"
        "print(c.execute('select sum(n) from t').fetchone()[0])",
    ),
]
