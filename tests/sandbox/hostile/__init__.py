"""All hostile programs."""

from .kernel import KERNEL
from .network import NETWORK
from .processes import PROCESSES
from .resources import DISK, MEMORY, OUTPUT, TIME
from .secrets import SECRETS

HOSTILE = [*SECRETS, *PROCESSES, *MEMORY, *DISK, *OUTPUT, *TIME, *NETWORK, *KERNEL]
