"""All hostile programs."""

from tests.sandbox.hostile.birth import BIRTH
from tests.sandbox.hostile.disk import DISK
from tests.sandbox.hostile.floods import OUTPUT, TIME
from tests.sandbox.hostile.inner import INNER
from tests.sandbox.hostile.kernel import KERNEL
from tests.sandbox.hostile.memory import MEMORY
from tests.sandbox.hostile.network import NETWORK
from tests.sandbox.hostile.processes import PROCESSES
from tests.sandbox.hostile.secrets import SECRETS

HOSTILE = [*SECRETS, *PROCESSES, *MEMORY, *DISK, *OUTPUT, *TIME, *NETWORK, *KERNEL, *BIRTH, *INNER]
