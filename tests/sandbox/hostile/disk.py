# ruff: noqa: E501 - programs keep the shape in which people write them
"""Using up or changing files, and leaving things behind."""

from tests.sandbox.programs import Hostile

DISK = [
    Hostile(
        "disk_fill",
        "fill every place that may be writable",
        """
for d in ('.', '/tmp', '/dev/shm', '/var/tmp', '/run', '/dev', '/', os.path.expanduser('~'), '/dev/mqueue', '/run/lock'):
    def f():
        with open(d + '/fill', 'wb') as h:
            h.write(bytes(1 << 20))
    attempt('write ' + d, f)
""",
    ),
    Hostile(
        "disk_tempfile",
        "temporary files",
        """
import tempfile
attempt('TemporaryFile', tempfile.TemporaryFile); attempt('mkdtemp', tempfile.mkdtemp); attempt('NamedTemporaryFile', tempfile.NamedTemporaryFile)
""",
    ),
    Hostile(
        "disk_o_tmpfile",
        "a nameless file",
        """
for d in ('/tmp', '.', '/dev/shm', '/'): attempt('O_TMPFILE', os.open, d, os.O_TMPFILE | os.O_RDWR)
""",
    ),
    Hostile(
        "disk_inodes",
        "thousands of empty files and folders",
        """
for d in ('.', '/tmp', '/dev/shm'):
    for i in range(200):
        attempt('mkdir', os.mkdir, f'{d}/d{i}'); attempt('mknod', os.mknod, f'{d}/n{i}'); attempt('mkfifo', os.mkfifo, f'{d}/p{i}')
""",
    ),
    Hostile(
        "disk_sparse",
        "a sparse file of a terabyte",
        """
attempt('truncate', os.truncate, '/tmp/x', 1 << 40); attempt('ftruncate stdout', os.ftruncate, 1, 1 << 40)
attempt('fallocate', os.posix_fallocate, 1, 0, 1 << 30)
attempt('lseek+write', lambda: (os.lseek(1, 1 << 40, 0), None)[1], ok=bool)
""",
    ),
    Hostile(
        "disk_overwrite_python",
        "change interpreter, libraries, sandbox",
        """
import json, runner.sandbox as s
for f in (json.__file__, sys.executable, os.__file__, s.__file__, '/usr/lib/os-release', '/bin/sh'):
    attempt('write', lambda: open(f, 'r+b')); attempt('append', lambda: open(f, 'ab')); attempt('unlink', os.unlink, f)
    attempt('rename', os.rename, f, f + '.x'); attempt('chmod', os.chmod, f, 0o777); attempt('utime', os.utime, f); attempt('chown', os.chown, f, os.getuid(), -1)
""",
    ),
    Hostile(
        "disk_pycache",
        "start a module for the next program",
        """
import sysconfig
for d in (*sys.path, '.', sysconfig.get_path('stdlib') + '/__pycache__'):
    attempt('start', lambda: open(os.path.join(d, 'evil.py'), 'w'))
""",
    ),
    Hostile(
        "symlink",
        "start links to secrets",
        """
for d in ('.', '/tmp', '/dev/shm'):
    attempt('symlink', os.symlink, '{{SECRET_FILE}}', d + '/l'); attempt('link', os.link, '{{SECRET_FILE}}', d + '/h')
""",
    ),
    Hostile(
        "mount",
        "mount, chroot, pivot, unshare",
        """
attempt('mount', syscall, 165, b'none', b'/tmp', b'tmpfs', 0, None); attempt('umount', syscall, 166, b'/tmp', 0)
attempt('chroot', os.chroot, '/tmp'); attempt('pivot_root', syscall, 155, b'/tmp', b'/tmp')
attempt('unshare', syscall, 272, 0x10000000); attempt('setns', syscall, 308, 0, 0); attempt('fsopen', syscall, 430, b'tmpfs', 0); attempt('open_tree', syscall, 428, -100, b'/', 1)
""",
    ),
    Hostile(
        "shm_posix",
        "leave shared memory behind",
        """
from multiprocessing import shared_memory
attempt('shm', lambda: shared_memory.SharedMemory(create=True, size=4096))
""",
    ),
    Hostile(
        "semaphore_posix",
        "leave a named semaphore behind",
        """
import multiprocessing as mp
attempt('semaphore', mp.Semaphore); attempt('lock', mp.Lock)
""",
    ),
    Hostile(
        "sqlite_shelve_dbm",
        "databases on disk",
        """
import sqlite3, shelve
attempt('sqlite', lambda: sqlite3.connect('x.db').execute('create table t(a)')); attempt('shelve', lambda: shelve.open('/tmp/x'))
""",
        must="finished crashed",
    ),
    Hostile(
        "cwd_private",
        "leave a file for the next execution",
        """
attempt('create', lambda: open('left.txt', 'w').write('x'))
if os.path.exists('left.txt'): breach('found')
""",
    ),
    Hostile(
        "xattr_acl",
        "attributes on files it can read",
        """
import json
attempt('setxattr', os.setxattr, json.__file__, 'user.x', b'1'); attempt('inotify', syscall, 294, 0); attempt('fanotify', syscall, 300, 0, 0)
attempt('quotactl', syscall, 179, 0, 0, 0, 0); attempt('sync', lambda: syscall(162))
""",
    ),
]
