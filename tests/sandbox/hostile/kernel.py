# ruff: noqa: E501 - programs keep the shape in which people write them
"""Rare corners of the kernel, terminals and devices."""

from tests.sandbox.programs import Hostile

KERNEL = [
    Hostile(
        "kernel_bpf_perf",
        "bpf, perf_event_open, userfaultfd",
        """
attempt('bpf', syscall, 321, 0, ctypes.create_string_buffer(64), 64); attempt('perf', syscall, 298, ctypes.create_string_buffer(128), 0, -1, -1, 0); attempt('userfaultfd', syscall, 323, 0)
""",
    ),
    Hostile(
        "kernel_keyring",
        "kernel keyrings",
        """
attempt('add_key', syscall, 248, b'user', b'k', b'v', 1, -3); attempt('keyctl', syscall, 250, 0, -3, 0); attempt('request_key', syscall, 249, b'user', b'k', None, 0)
""",
    ),
    Hostile(
        "kernel_modules",
        "load a module, kexec, reboot",
        """
attempt('init_module', syscall, 175, None, 0, b''); attempt('finit', syscall, 313, 0, b'', 0); attempt('kexec', syscall, 246, 0, 0, None, 0); attempt('reboot', syscall, 169, 0xfee1dead, 672274793, 0x1234567, None)
""",
    ),
    Hostile(
        "kernel_ports",
        "ports and descriptor tables of the processor",
        """
attempt('iopl', syscall, 172, 3); attempt('ioperm', syscall, 173, 0, 1, 1); attempt('modify_ldt', syscall, 154, 1, ctypes.create_string_buffer(16), 16)
""",
    ),
    Hostile(
        "kernel_hostname",
        "host name, swap, accounting, clock",
        """
attempt('sethostname', syscall, 170, b'evil', 4); attempt('setdomain', syscall, 171, b'evil', 4); attempt('swapon', syscall, 167, b'/tmp/x', 0); attempt('acct', syscall, 163, None)
attempt('settimeofday', syscall, 164, ctypes.create_string_buffer(16), None); attempt('adjtimex', syscall, 159, ctypes.create_string_buffer(208)); attempt('clock_settime', syscall, 227, 0, ctypes.create_string_buffer(16))
""",
    ),
    Hostile(
        "kernel_aio",
        "old asynchronous input and output",
        "attempt('io_setup', syscall, 206, 8, ctypes.create_string_buffer(8))",
    ),
    Hostile(
        "kernel_numa",
        "memory policy and page moving",
        """
attempt('mbind', syscall, 237, 0, 0, 0, 0, 0, 0); attempt('migrate', syscall, 256, 0, 0, 0, 0); attempt('move_pages', syscall, 279, 0, 0, 0, 0, 0, 0); attempt('set_mempolicy', syscall, 238, 0, 0, 0)
""",
    ),
    Hostile(
        "kernel_new_calls",
        "every new number from 424 on",
        """
for nr in range(424, 480):
    if nr in (436, 439): continue    # close_range, faccessat2 are harmless
    attempt('nr %d' % nr, syscall, nr, 0, 0, 0, 0, 0, 0)
""",
    ),
    Hostile(
        "kernel_more_seccomp",
        "replace or extend its own filter",
        """
attempt('seccomp', syscall, 317, 1, 0, ctypes.create_string_buffer(16)); attempt('listener', syscall, 317, 1, 8, ctypes.create_string_buffer(16)); attempt('sizes', syscall, 317, 3, 0, ctypes.create_string_buffer(16))
""",
    ),
    Hostile(
        "kernel_landlock_again",
        "make a new Landlock ruleset",
        "attempt('create', syscall, 444, None, 0, 1); attempt('restrict', syscall, 446, 0, 0)",
    ),
    Hostile(
        "kernel_personality",
        "another personality (no address randomisation)",
        "attempt('personality', syscall, 135, 0x0040000)",
    ),
    Hostile(
        "kernel_x32_all",
        "the x32 table",
        """
for nr in range(0x40000000, 0x40000000 + 560): attempt('x32', syscall, nr, 0, 0, 0, 0, 0, 0)
""",
    ),
    Hostile(
        "kernel_vmsplice",
        "pages shared with the kernel",
        "r, w = os.pipe(); attempt('vmsplice', syscall, 278, w, ctypes.create_string_buffer(16), 1, 0); attempt('tee', syscall, 276, r, w, 1, 0)",
    ),
    Hostile(
        "kernel_openat2",
        "open with hidden flags",
        "attempt('openat2', syscall, 437, -100, b'/etc/passwd', ctypes.create_string_buffer(24), 24)",
    ),
    Hostile(
        "kernel_fanotify_inotify",
        "watch other people's files",
        "attempt('inotify', syscall, 253); attempt('inotify1', syscall, 294, 0); attempt('fanotify', syscall, 300, 0, 0)",
    ),
    Hostile(
        "kernel_memfd_secret",
        "secret memory, map shadow",
        "attempt('memfd_secret', syscall, 447, 0); attempt('pkey', syscall, 330, 0, 0); attempt('remap_file_pages', syscall, 216, 0, 0, 0, 0, 0)",
    ),
    Hostile(
        "kernel_lookup_dcookie",
        "obsolete calls",
        """
for nr in (134, 136, 139, 156, 174, 177, 178, 180, 181, 182, 183, 184, 185, 212, 214, 215, 236): attempt('nr %d' % nr, syscall, nr, 0, 0, 0, 0, 0, 0)
""",
    ),
    Hostile(
        "dev_access",
        "open devices",
        """
for d in ('/dev/mem', '/dev/kvm', '/dev/fuse', '/dev/ptmx', '/dev/tty', '/dev/console', '/dev/sda', '/dev/vda', '/dev/net/tun', '/dev/loop0', '/dev/input/event0', '/dev/full'):
    attempt(d, lambda: open(d, 'rb', buffering=0))
""",
    ),
    Hostile(
        "tty_inject",
        "type into a terminal",
        """
import fcntl, termios
for fd in (0, 1, 2, 4): attempt('TIOCSTI', fcntl.ioctl, fd, termios.TIOCSTI, b'x')
attempt('openpty', os.openpty)
""",
    ),
    Hostile(
        "ioctl_storm",
        "unusual requests on its descriptors",
        """
import fcntl
for fd in (0, 1, 2):
    for req in list(range(0x5400, 0x5480)) + [0x8901, 0x8902, 0x8904, 0x1271, 0x40049409, 0xC0185879]:
        if req in (0x5401, 0x5413, 0x5450, 0x5451, 0x541B, 0x5421): continue
        attempt('ioctl %x' % req, fcntl.ioctl, fd, req, b'\\0' * 64)
""",
    ),
    Hostile(
        "sysctl_write",
        "change the kernel's settings",
        """
for f in ('/proc/sys/kernel/core_pattern', '/proc/sys/vm/overcommit_memory', '/proc/sysrq-trigger', '/sys/kernel/mm/ksm/run', '/proc/self/attr/current', '/proc/self/comm', '/proc/self/clear_refs'):
    attempt(f, lambda: open(f, 'w').write('1'))
""",
    ),
    Hostile(
        "cgroup_escape",
        "change its cgroup",
        """
for f in ('/sys/fs/cgroup/cgroup.procs', '/sys/fs/cgroup/memory/tasks', '/sys/fs/cgroup/memory/release_agent', '/sys/fs/cgroup/memory.max'):
    attempt(f, lambda: open(f, 'w').write('0')); attempt('read ' + f, lambda: open(f).read())
""",
    ),
    Hostile(
        "seal_tricks",
        "seal or grow the runner's memory files",
        """
import fcntl
for fd in (0, 1, 2): attempt('seal', fcntl.fcntl, fd, 1033, 1); attempt('pipe size', fcntl.fcntl, fd, 1031, 1 << 20)
""",
    ),
    Hostile(
        "executable_memory",
        "run machine code (allowed) that calls what is refused",
        """
import mmap
m = mmap.mmap(-1, 4096, prot=7); m.write(bytes.fromhex('b8390000000f05c3'))   # mov eax,57 (fork); syscall; ret
r = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()
if r >= 0: breach('fork', r)
""",
    ),
]
