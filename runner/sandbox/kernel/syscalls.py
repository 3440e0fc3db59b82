"""Thin, typed wrappers for libc and kernel calls that the standard library lacks. They contain no policy."""

import ctypes
import os
import platform

from runner.sandbox.kernel.syscall_numbers import NUMBERS

# PyDLL keeps the interpreter lock: these calls are short, and fork must not release it.
_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
# Looked up once, because a library object searches its attributes each time.
_syscall, _prctl, _fork = _libc.syscall, _libc.prctl, _libc.fork

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_GET_TID_ADDRESS = 40

ARCH = platform.machine()
MOST_DESCRIPTORS = 65_536


def supported() -> bool:
    """Whether the system call numbers of this architecture are known."""
    return ARCH in NUMBERS


def prctl(option: int, value: int) -> None:
    """Sets one attribute of the calling process."""
    if _prctl(option, value, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


def try_prctl(option: int, value: int) -> bool:
    """The same if the kernel may lack the attribute."""
    try:
        prctl(option, value)
    except OSError:
        return False
    return True


def become_user(uid: int) -> None:
    """Switches to a user and group id for good, without any other group."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def syscall(name: str, *arguments: object) -> int:
    """Makes a system call by name; integers, None and ctypes buffers are passed on."""
    return Call(name, *arguments)()


class Call:
    """A system call with prepared arguments, so that a child only has to make it."""

    def __init__(self, name: str, *arguments: object) -> None:
        self._name = name
        passed = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
        self._arguments = (ctypes.c_long(NUMBERS[ARCH][name]), *passed)

    def __call__(self) -> int:
        result = int(_syscall(*self._arguments))
        if result < 0:
            code = ctypes.get_errno()
            raise OSError(code, f"{self._name}: {os.strerror(code)}")
        return result


def raw_fork() -> int:
    """Forks without the interpreter's hooks (0.4 ms cheaper); only for a process with one thread."""
    pid = int(_fork())
    if pid < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"fork: {os.strerror(code)}")
    return pid


def sibling_fork(flags: int) -> Call:
    """A fork whose child gets the caller's parent; like libc's, it stores the child's thread id where libc keeps it."""
    address = ctypes.c_ulong(0)
    if _prctl(PR_GET_TID_ADDRESS, ctypes.addressof(address), 0, 0, 0) < 0:
        address.value = 0  # the kernel then stores nothing
    order = (address.value, 0) if ARCH == "x86_64" else (0, address.value)
    return Call("clone", flags, 0, 0, *order)


def close_from(first: int) -> None:
    """Closes every descriptor from `first` on, with one call if the kernel has close_range."""
    os.closerange(first, MOST_DESCRIPTORS)


def small_thread_stacks(size: int) -> bool:
    """Sets the stack size of new threads, which otherwise follows the (raised) stack limit of the process."""
    attributes = ctypes.create_string_buffer(128)
    try:
        failed = (
            _libc.pthread_attr_init(attributes)
            or _libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(size))
            or _libc.pthread_setattr_default_np(attributes)
        )
    except AttributeError:
        return False
    return not failed
