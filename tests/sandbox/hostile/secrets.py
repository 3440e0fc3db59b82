# ruff: noqa: E501 - programs keep the shape in which people write them
"""Reading what is not theirs: environment, memory, files, other items, other slots."""

from tests.sandbox.programs import Hostile

SECRETS = [
    Hostile(
        "own_environ",
        "find a token in its own environment",
        """
for k, v in os.environ.items():
    if 'canary' in (k + v).lower(): breach(k)
allowed = {'PATH','LANG','OPENBLAS_NUM_THREADS','OMP_NUM_THREADS','MKL_NUM_THREADS','PYTHONHASHSEED','MALLOC_ARENA_MAX','LC_CTYPE'}
if set(os.environ) - allowed: breach('unexpected', set(os.environ) - allowed)
""",
    ),
    Hostile(
        "proc_environ_scan",
        "scan /proc/*/environ of every process",
        """
for p in range(1, 8000):
    try: d = open(f'/proc/{p}/environ','rb').read()
    except OSError: continue
    breach(p, d[:30])
""",
    ),
    Hostile(
        "proc_environ_runner",
        "read the runner's environment by its pid",
        """
for p in (1, os.getppid(), {{RUNNER_PID}}):
    attempt('environ', lambda: open(f'/proc/{p}/environ','rb').read())
""",
    ),
    Hostile(
        "proc_self_environ",
        "read its own initial environment block",
        """
attempt('self environ', lambda: open('/proc/self/environ','rb').read(), ok=lambda d: b'CANARY' in d)
""",
    ),
    Hostile(
        "proc_mem_runner",
        "read the runner's memory",
        """
for p in (1, os.getppid(), {{RUNNER_PID}}):
    attempt('mem', lambda: open(f'/proc/{p}/mem','rb'))
    attempt('maps', lambda: open(f'/proc/{p}/maps').read())
""",
    ),
    Hostile(
        "proc_fd_parent",
        "open descriptors of parent and runner",
        """
for p in (1, os.getppid(), {{RUNNER_PID}}):
    attempt('fd', os.listdir, f'/proc/{p}/fd')
    for n in range(0, 30): attempt('open fd', lambda: open(f'/proc/{p}/fd/{n}','rb').read(1))
""",
    ),
    Hostile(
        "proc_cmdline",
        "read the command lines of other processes",
        """
for p in range(1, 5000):
    attempt('cmdline', lambda: open(f'/proc/{p}/cmdline','rb').read())
""",
    ),
    Hostile(
        "proc_listing",
        "list the processes",
        """
attempt('listdir /proc', os.listdir, '/proc')
attempt('scandir /proc', lambda: list(os.scandir('/proc')))
""",
    ),
    Hostile(
        "proc_root_cwd",
        "walk into another process's root or working directory",
        """
for p in ('self', '1', str(os.getppid()), '{{RUNNER_PID}}'):
    attempt('root', lambda: open(f'/proc/{p}/root/etc/passwd').read())
    attempt('cwd', os.listdir, f'/proc/{p}/cwd/..')
""",
    ),
    Hostile(
        "etc_passwd",
        "read accounts and host names",
        """
for f in ('/etc/passwd','/etc/shadow','/etc/group','/etc/hostname','/etc/hosts','/etc/resolv.conf','/etc/machine-id','/etc/ssh/sshd_config'):
    attempt(f, lambda: open(f).read())
""",
    ),
    Hostile(
        "answer_file",
        "read the file with the expected answers",
        """
attempt('answers', lambda: open('{{SECRET_FILE}}').read())
attempt('os.open', os.open, '{{SECRET_FILE}}', os.O_RDONLY)
""",
    ),
    Hostile(
        "answer_file_openat_dir",
        "reach the answers relative to a directory descriptor",
        """
attempt('dirfd', lambda: os.open('{{SECRET_NAME}}', os.O_RDONLY, dir_fd=os.open('{{SECRET_DIR}}', os.O_PATH)))
""",
    ),
    Hostile(
        "answer_file_path_fd",
        "open the answers with O_PATH and reopen through /proc/self/fd",
        """
def f():
    fd = os.open('{{SECRET_FILE}}', os.O_PATH)
    return open(f'/proc/self/fd/{fd}').read()
attempt('O_PATH', f)
""",
    ),
    Hostile(
        "answer_file_relative",
        "climb out of the working directory with ..",
        """
attempt('relative', lambda: open('../' * 20 + '{{SECRET_FILE}}'.lstrip('/')).read())
attempt('chdir', lambda: (os.chdir('{{SECRET_DIR}}'), open('{{SECRET_NAME}}').read()))
""",
    ),
    Hostile(
        "sandbox_source",
        "read the code of the runner and of the sandbox",
        """
import runner.sandbox as s
for f in (s.__file__, os.path.dirname(s.__file__) + '/executor.py', os.path.dirname(s.__file__) + '/../contract/events.py'):
    attempt('source', lambda: open(f).read())
""",
    ),
    Hostile(
        "inspect_source",
        "get the sandbox's source through inspect",
        """
import inspect, runner.sandbox.processes.jail as j
attempt('inspect', inspect.getsource, j)
""",
    ),
    Hostile(
        "home_directories",
        "list / and every home",
        """
for d in ('/', '/root', '/home', '/var', '/work', '/app', '/opt', '/srv', '/run', '/run/secrets', '/tmp', '/var/run', '/mnt', '/sys', '/etc'):
    attempt('listdir ' + d, os.listdir, d)
""",
    ),
    Hostile(
        "other_slot_dir",
        "look for other programs' working directories",
        """
cwd = os.getcwd()
attempt('siblings', os.listdir, os.path.dirname(cwd) or '/')
if os.listdir('.'): breach('working directory is not empty', os.listdir('.'))
""",
        must="finished crashed",
    ),
    Hostile(
        "own_memory_scan",
        "find data of other programs in inherited memory",
        """
import gc
needle = 'CANARY' + '-JOB'
seen = 0
for o in gc.get_objects():
    try:
        if isinstance(o, (str, bytes)) and needle in str(o) and o is not needle: breach('object')
        if isinstance(o, dict):
            for k, v in list(o.items()):
                if isinstance(v, (str, bytes)) and needle in str(v) and v is not needle and k != 'needle' and '__builtins__' not in o: breach(k)
    except Exception: pass
""",
    ),
    Hostile(
        "frames_scan",
        "walk the frames of the sandbox for answers",
        """
f = sys._getframe()
while f:
    for k, v in list(f.f_locals.items()):
        if 'CANARY' in repr(v) and k not in ('source', 'payload', 'f', 'k', 'v') and f.f_globals is not globals(): breach(k)
        if k in ('expected', 'answers', 'accept'): breach(k)
    f = f.f_back
""",
    ),
    Hostile(
        "modules_scan",
        "find a module that holds expected outputs, secrets or clients",
        """
for n, m in list(sys.modules.items()):
    for k, v in list(vars(m).items()) if hasattr(m, '__dict__') else []:
        if isinstance(v, str) and 'canary-token' in v.lower(): breach(n, k)
for n in ('anthropic', 'openai', 'httpx', 'runner.contract', 'runner.sandbox.executor', 'runner.sandbox.pool', 'runner.process', 'orchestrator', 'docker'):
    if n in sys.modules: breach('loaded', n)
""",
    ),
    Hostile(
        "import_orchestrator",
        "import the product's own packages",
        """
for n in ('orchestrator', 'orchestrator.app', 'runner.contract', 'runner.process.claim', 'docker', 'anthropic', 'openai', 'fastapi'):
    attempt('import ' + n, __import__, n, ok=lambda m: getattr(m, '__file__', None) and os.path.basename(m.__file__) != '__init__.py' or n.startswith('orch'))
""",
    ),
    Hostile(
        "inherited_fds",
        "use descriptors that were left open",
        """
import stat
for fd in range(3, 256):
    try: st = os.fstat(fd)
    except OSError: continue
    kind = stat.S_IFMT(st.st_mode)
    if fd == 4 and kind == stat.S_IFSOCK: continue          # its own turn signal
    if kind == stat.S_IFDIR:                                # library folders, under Landlock
        attempt('dir fd', lambda: os.open('../../../../../etc/passwd', os.O_RDONLY, dir_fd=fd)); continue
    if kind in (stat.S_IFREG, stat.S_IFCHR): # kept copies of stdin, stdout, stderr
        if os.readlink(f'/proc/self/fd/{fd}').startswith('/memfd:std') if os.access('/proc/self/fd', os.F_OK) else True: continue
    breach(fd, oct(st.st_mode))
""",
    ),
    Hostile(
        "stat_secret_contents",
        "learn file contents through statx, xattr or readlink",
        """
attempt('xattr', os.getxattr, '{{SECRET_FILE}}', 'user.answer')
attempt('listxattr', os.listxattr, '{{SECRET_FILE}}')
""",
    ),
    Hostile(
        "dmesg_kallsyms",
        "read kernel messages, addresses, keys",
        """
for f in ('/dev/kmsg', '/proc/kmsg', '/proc/kallsyms', '/proc/kcore', '/proc/keys', '/proc/modules', '/proc/sched_debug', '/sys/kernel/notes', '/proc/config.gz'):
    attempt(f, lambda: open(f, 'rb').read(64), ok=bool)
attempt('syslog', syscall, 103, 3, ctypes.create_string_buffer(100), 100)
""",
    ),
    Hostile(
        "cloud_metadata",
        "ask the metadata service for credentials",
        """
import urllib.request
for u in ('http://169.254.169.254/latest/meta-data/', 'http://metadata.google.internal/', 'http://100.100.100.200/'):
    attempt(u, lambda: urllib.request.urlopen(u, timeout=0.3).read(20))
""",
    ),
    Hostile(
        "docker_socket",
        "talk to the container engine",
        """
import socket
for p in ('/var/run/docker.sock', '/run/docker.sock', '/run/containerd/containerd.sock', '/run/podman/podman.sock'):
    def f():
        s = socket.socket(socket.AF_UNIX); s.connect(p); return s
    attempt(p, f)
""",
    ),
    Hostile(
        "mmap_secret",
        "map a secret file",
        """
import mmap
attempt('mmap', lambda: mmap.mmap(os.open('{{SECRET_FILE}}', os.O_RDONLY), 0, prot=mmap.PROT_READ)[:])
""",
    ),
    Hostile(
        "sendfile_secret",
        "copy a secret with splice, sendfile, copy_file_range",
        """
attempt('sendfile', lambda: os.sendfile(1, os.open('{{SECRET_FILE}}', os.O_RDONLY), 0, 100))
for nr in (40, 275, 326, 276, 278):
    attempt('splice', syscall, nr, 1, 0, 0, 0, 10, 0)
""",
    ),
    Hostile(
        "name_to_handle",
        "open a file by handle",
        """
attempt('name_to_handle_at', syscall, 303, -100, b'/etc/passwd', ctypes.create_string_buffer(200), ctypes.create_string_buffer(8), 0)
attempt('open_by_handle_at', syscall, 304, -100, ctypes.create_string_buffer(200), 0)
""",
    ),
    Hostile(
        "stdin_of_others",
        "reread standard input beyond its own",
        """
data = os.pread(0, 1 << 20, 0)
if b'CANARY' in data: breach('foreign input')
attempt('write stdin', os.write, 0, b'x')
attempt('read stdout', os.read, 1, 10)
""",
    ),
    Hostile(
        "reopen_stdin_rw",
        "open its input for writing through /proc/self/fd",
        """
attempt('rw', lambda: os.write(os.open('/proc/self/fd/0', os.O_RDWR), b'changed'))
""",
    ),
    Hostile(
        "program_fd",
        "find the program's own memory file and what lies beside it",
        """
attempt('fd 3', lambda: os.pread(3, 100, 0))
attempt('fd 6', lambda: os.fstat(6)); attempt('fd 7', lambda: os.fstat(7))
""",
    ),
    Hostile(
        "core_dump",
        "make the kernel write its memory to disk",
        """
import resource, signal
attempt('core', resource.setrlimit, resource.RLIMIT_CORE, (1 << 20, 1 << 20))
os.kill(os.getpid(), signal.SIGABRT)
""",
        must="crashed",
    ),
]
