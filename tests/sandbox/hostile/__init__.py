"""All hostile programs."""

from .disk import DISK
from .floods import OUTPUT, TIME
from .kernel import KERNEL
from .memory import MEMORY
from .network import NETWORK
from .processes import PROCESSES
from .secrets import SECRETS

HOSTILE = [*SECRETS, *PROCESSES, *MEMORY, *DISK, *OUTPUT, *TIME, *NETWORK, *KERNEL]
