"""Sends an alert as an e-mail through the configured SMTP server. The standard library's client, on a thread."""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import format_datetime
from urllib.parse import unquote, urlsplit

from orchestrator.alerts.sending.messages import mail_text
from orchestrator.alerts.tables import Alert

TIMEOUT_S = 10.0
SETTINGS = "BENCHYARD_SMTP_URL and BENCHYARD_SMTP_FROM"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class MailRefused(Exception):
    """The message could not be handed over; the text says why."""


@dataclass(frozen=True)
class MailServer:
    """From `smtp://user:password@host:587` (STARTTLS where it is offered) or `smtps://host:465`."""

    host: str
    port: int
    encrypted: bool
    user: str | None
    password: str | None
    sender: str

    @classmethod
    def of(cls, url: str, sender: str) -> MailServer:
        parts = urlsplit(url)
        if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
            raise ValueError("give smtp://user:password@host:587 or smtps://host:465")
        encrypted = parts.scheme == "smtps"
        user, password = (unquote(part) if part else None for part in (parts.username, parts.password))
        return cls(parts.hostname, parts.port or (465 if encrypted else 587), encrypted, user, password, sender)

    async def send(self, to: str, alert: Alert, base_url: str) -> None:
        """Hand one message over; raises `MailRefused`."""
        subject, text = mail_text(alert, base_url)
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = self.sender, to, subject
        message["Date"] = format_datetime(alert.at)
        message["Message-ID"] = f"<{alert.uid}@benchyard>"  # the same in every try
        message.set_content(text)
        try:
            await asyncio.to_thread(self._hand_over, message)
        except (OSError, smtplib.SMTPException) as error:
            raise MailRefused(f"{type(error).__name__}: {error}"[:500]) from error

    def _hand_over(self, message: EmailMessage) -> None:
        context = ssl.create_default_context()
        if self.encrypted:
            client: smtplib.SMTP = smtplib.SMTP_SSL(self.host, self.port, timeout=TIMEOUT_S, context=context)
        else:
            client = smtplib.SMTP(self.host, self.port, timeout=TIMEOUT_S)
        with client:
            client.ehlo_or_helo_if_needed()
            safe = self.encrypted
            if not safe and client.has_extn("starttls"):
                client.starttls(context=context)
                client.ehlo()
                safe = True
            if self.user is not None:
                if not safe and self.host not in LOOPBACK:
                    raise smtplib.SMTPException("the server offers no encryption, so the password is not sent to it")
                client.login(self.user, self.password or "")
            client.send_message(message)
