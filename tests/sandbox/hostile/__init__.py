"""All hostile programs."""

from .birth import BIRTH
from .disk import DISK
from .floods import OUTPUT, TIME
from .inner import INNER
from .kernel import KERNEL
from .memory import MEMORY
from .network import NETWORK
from .processes import PROCESSES
from .secrets import SECRETS

HOSTILE = [*SECRETS, *PROCESSES, *MEMORY, *DISK, *OUTPUT, *TIME, *NETWORK, *KERNEL, *BIRTH, *INNER]
