# ruff: noqa: E501 - programs keep the shape in which people write them
"""Talking to anybody."""

from tests.sandbox.programs import Hostile

NETWORK = [
    Hostile(
        "net_tcp_connect",
        "connect to a local service",
        """
import socket
attempt('connect', socket.create_connection, ('127.0.0.1', {{PORT}}), 0.5)
attempt('connect v6', socket.create_connection, ('::1', {{PORT}}), 0.5)
""",
    ),
    Hostile(
        "net_tcp_listen",
        "listen for connections",
        """
import socket
def f():
    s = socket.socket(); s.bind(('0.0.0.0', 0)); s.listen(); return s
attempt('listen', f)
""",
    ),
    Hostile(
        "net_udp",
        "send a datagram",
        """
import socket
attempt('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {{PORT}})))
""",
    ),
    Hostile(
        "net_raw",
        "raw and packet sockets",
        """
import socket
for f, t, p in ((2, 3, 1), (17, 3, 0), (2, 3, 255), (10, 3, 58)): attempt('raw', socket.socket, f, t, p)
""",
    ),
    Hostile(
        "net_all_families",
        "every address family",
        """
import socket
for f in range(0, 46):
    for t in (1, 2, 3, 5):
        attempt('family %d' % f, socket.socket, f, t)
""",
    ),
    Hostile(
        "net_dns",
        "resolve a name (and tunnel data in it)",
        """
import socket
attempt('getaddrinfo', socket.getaddrinfo, 'secret.example.com', 80)
attempt('gethostbyname', socket.gethostbyname, 'example.com')
""",
    ),
    Hostile(
        "net_http",
        "fetch a page",
        """
import urllib.request, http.client
attempt('urlopen', lambda: urllib.request.urlopen('http://127.0.0.1:{{PORT}}/', timeout=0.5))
attempt('http', lambda: http.client.HTTPConnection('127.0.0.1', {{PORT}}, timeout=0.5).request('GET', '/'))
""",
    ),
    Hostile(
        "net_unix_path",
        "a local socket by path",
        """
import socket
def f():
    s = socket.socket(socket.AF_UNIX); s.connect('{{SECRET_DIR}}/canary.sock'); return s
attempt('unix path', f)
""",
    ),
    Hostile(
        "net_unix_abstract",
        "a local socket by abstract name",
        """
import socket
def f():
    s = socket.socket(socket.AF_UNIX); s.connect('\\0benchyard-canary-{{PORT}}'); return s
attempt('abstract', f)
""",
    ),
    Hostile(
        "net_socketpair_dgram",
        "an unnamed datagram pair that can send anywhere",
        """
import socket
attempt('dgram pair', socket.socketpair, socket.AF_UNIX, socket.SOCK_DGRAM)
attempt('seqpacket pair', socket.socketpair, socket.AF_UNIX, socket.SOCK_SEQPACKET)
""",
    ),
    Hostile(
        "net_pair_sendto",
        "send from a stream pair to an address",
        """
import socket
a, b = socket.socketpair()
attempt('sendto', a.sendto, b'x', '\\0benchyard-canary-{{PORT}}'); attempt('connect', a.connect, '\\0benchyard-canary-{{PORT}}'); attempt('bind', a.bind, '\\0benchyard-evil')
attempt('sendmsg', a.sendmsg, [b'x']); attempt('recvmsg', lambda: (b.send(b'x'), a.recvmsg(1))[1])
""",
    ),
    Hostile(
        "net_control_fd",
        "use its control socket to reach the runner",
        """
import socket
s = socket.socket(fileno=os.dup(4))
attempt('send_fds', socket.send_fds, s, [b'x'], [0])
attempt('connect', s.connect, '\\0benchyard-canary-{{PORT}}')
""",
    ),
    Hostile(
        "net_asyncio_server",
        "an asyncio server",
        """
import asyncio
async def main(): return await asyncio.start_server(lambda r, w: None, '127.0.0.1', 0)
attempt('server', lambda: asyncio.run(main()), ok=lambda s: s.sockets)
""",
    ),
    Hostile(
        "net_netlink",
        "change the network through netlink",
        """
import socket
attempt('netlink', socket.socket, socket.AF_NETLINK, socket.SOCK_RAW, 0)
""",
    ),
    Hostile(
        "net_vsock_tipc_xdp",
        "vsock, TIPC, XDP, Bluetooth",
        """
import socket
for f in (40, 30, 44, 31, 38, 29): attempt('family', socket.socket, f, socket.SOCK_STREAM)
""",
    ),
    Hostile(
        "net_io_uring", "network through io_uring", "attempt('io_uring', syscall, 425, 4, ctypes.create_string_buffer(120))"
    ),
    Hostile(
        "net_i386_socket",
        "open a socket by the 32-bit system call table",
        """
code = bytes.fromhex('53b866010000bb02000000b90100000031d2cd805bc3')    # push rbx; mov eax,359 (socket); ebx=2; ecx=1; edx=0; int 0x80; pop rbx; ret
import mmap
m = mmap.mmap(-1, 4096, prot=7)
m.write(code)
f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
r = f()
if r >= 0: breach('socket', r)
""",
        must="crashed finished",
    ),
    Hostile("net_x32_socket", "open a socket by x32 numbers", "attempt('x32', syscall, 0x40000000 + 41, 2, 1, 0)"),
]
