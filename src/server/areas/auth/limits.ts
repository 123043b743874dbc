import { availableParallelism } from "node:os";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../kernel/time/duration.ts";

export const ACCESS_TOKEN_TTL_SECONDS = 900;
/** Keys of access tokens that are kept at a time; each is published. */
export const TOKEN_KEYS_MAX = 50;
/** Interval of the checks whether a new key is asked for or due. */
export const TOKEN_KEYS_CHECK_MS = 2 * SECOND_MS;
export const TOKEN_KEYS_DAYS_DEFAULT = 90;
export const REFRESH_TOKEN_TTL_SECONDS = (28 * DAY_MS) / SECOND_MS;
/** Time for which a refresh token that has been replaced stays good: two tabs may refresh at once. */
export const REFRESH_GRACE_MS = 30 * SECOND_MS;
/** Replaced refresh tokens that are remembered within the grace; an older one counts as used too late. */
export const REFRESH_ROTATIONS_KEPT = 64;

export const VERIFICATION_TTL_MS = 24 * HOUR_MS;
/** Minimal time between two mails with a verification link that sign-ins cause. */
export const VERIFICATION_PAUSE_MS = MINUTE_MS;
export const INVITATION_TTL_MS = 7 * DAY_MS;
export const RESET_TTL_MS = HOUR_MS;
export const MAGIC_LINK_TTL_MS = 15 * MINUTE_MS;
export const EMAIL_CODE_TTL_MS = 5 * MINUTE_MS;
/** Wrong attempts that end a mailed code, or one sent to a phone. */
export const CODE_ATTEMPTS_MAX = 5;
export const PHONE_CODE_TTL_MS = 5 * MINUTE_MS;
/** Texts to one number that are asked for, for each use. */
export const TEXTS_PER_NUMBER = { requests: 5, window: 600 };
/** Changes of the number that a user may ask for. */
export const PHONE_CHANGES_PER_USER = { requests: 5, window: 600 };
/** Texts that are being sent at once; what exceeds them is not sent. */
export const TEXTS_AT_ONCE_MAX = 100;
/** Time that `auth.phones.send` may take. */
export const TEXT_TIMEOUT_MS = 15 * SECOND_MS;
/** Time that a provider may take to answer. */
export const TEXT_POST_TIMEOUT_MS = 10 * SECOND_MS;
export const MFA_TICKET_TTL_MS = 5 * MINUTE_MS;
export const RECOVERY_CODE_COUNT = 10;
export const OAUTH_STATE_TTL_MS = 10 * MINUTE_MS;
export const PASSKEY_CHALLENGE_TTL_MS = 5 * MINUTE_MS;
export const PASSKEYS_PER_USER_MAX = 50;

/** argon2id, as OWASP recommends: 19 MiB, 2 passes, 1 lane. */
export const ARGON2_MEMORY_KIB = 19_456;
export const ARGON2_PASSES = 2;
/**
 * Hashes at once. They share their threads, one per core, with the disk's syncs: one thread stays free, so that no write
 * waits for a hash.
 */
export const HASHES_AT_ONCE_MAX = Math.max(1, availableParallelism() - 1);
/**
 * Hashes at once beside them, in processes of lower priority, so that all cores are used and requests still come first: from
 * so many waiting hashes on, because such a process takes about 40 MB.
 */
export const HASH_PROCESSES_MAX = availableParallelism() > 1 ? 1 : 0;
export const HASHES_WAITING_FOR_PROCESS = 2;
export const HASH_PROCESS_IDLE_MS = 30_000;
/** Time that one hash may take there; the slowest that is imported takes seconds. Then a thread computes it. */
export const HASH_TIMEOUT_MS = 60_000;
/** Hashes that wait for their turn; past that a sign-in is answered 503 rather than after a minute. */
export const HASHES_WAITING_MAX = 1_000;
/** Hashes that one client network may have waiting; networks take turns, so that a flood waits for itself. */
export const HASHES_WAITING_PER_SHARER_MAX = 300;
/** Bounds of imported hashes: what is above would let one sign-in take minutes. */
export const BCRYPT_COST_MIN = 4;
export const BCRYPT_COST_MAX = 16;
export const PBKDF2_ITERATIONS_MAX = 10_000_000;
export const SALT_BYTES_MAX = 1_024;
/** 128 MiB: the most that one sign-in takes of the memory. */
export const ARGON2_IMPORTED_MAX_KIB = 128 * 1024;
export const SCRYPT_MAX_BYTES = 128 * 1024 * 1024;
export const SCRYPT_LOGARITHM_MAX = 20;
export const SCRYPT_BLOCK_SIZE_MAX = 64;
export const SCRYPT_PARALLELISM_MAX = 16;
/** Rounds of SHA-crypt: fewer than the first are none of its form. */
export const SHA_CRYPT_ROUNDS_MIN = 1_000;
export const SHA_CRYPT_ROUNDS_MAX = 1_000_000;
export const ARGON2_IMPORTED_PASSES_MAX = 16;
export const ARGON2_IMPORTED_LANES_MAX = 16;
/** Bounds of argon2 itself. */
export const ARGON2_LANE_MIN_KIB = 8;
export const ARGON2_SALT_BYTES_MIN = 8;
/** A shorter one could be met by chance. */
export const HASH_BYTES_MIN = 16;
export const HASH_BYTES_MAX = 128;
/**
 * A refused password is answered no sooner than this after its check began. It is longer than the hashes that are made
 * here and imported from elsewhere usually take, so that the time does not tell which kind an account has.
 */
export const REFUSAL_MS = 300;

/** Sessions whose state is kept in memory; others are read when they are used. */
export const SESSIONS_IN_MEMORY_MAX = 200_000;
/** Sessions that a worker keeps between two commits to their file. */
export const SESSIONS_KEPT_MAX = 10_000;
/**
 * Sessions of one user, where `session.maxActive` sets no lower bound: for one more, the one that was used longest ago ends.
 * It bounds what a list holds, and what the end of all sessions takes.
 */
export const SESSIONS_PER_USER_MAX = 1_000;
/** Sessions of a user that administrators are shown. */
export const SESSIONS_SHOWN_MAX = 100;
/** Sessions that one sign-in ends to make room. */
export const SESSIONS_ENDED_AT_ONCE_MAX = 200;
export const USER_AGENT_MAX_CHARACTERS = 512;
/** Sockets of a session that expires are closed within this. */
export const CLEANUP_INTERVAL_MS = 10 * SECOND_MS;
/** Between its steps while there is more. */
export const CLEANUP_PAUSE_MS = 50;
/** Rows that one clean-up transaction removes. */
export const CLEANUP_CHUNK_ROWS = 1_000;

/** Accounts whose address is given its one form in one write of a start. */
export const ADDRESS_FORMS_PER_STEP = 1_000;
/** Accounts that keep another form of their address and are named in the log. */
export const ADDRESS_FORMS_NAMED_MAX = 20;
/** Users of an import whose JSON is written before others get their turn. */
export const IMPORT_SLICE_USERS = 50;
/** Users that one slice of a search by name looks at: of these, some may have been found by their email before. */
export const SEARCH_LOOKED_AT_MAX = 200;

/** Time for which a sign-in, or a password that was confirmed, lets a session add and remove ways of signing in. */
export const RECENT_PROOF_MS = 10 * MINUTE_MS;

/**
 * Wrong six-digit codes of one account and use within a day, which begins with the first of them. With three codes that are
 * right at a time, that many guesses meet one with 0.015 %.
 */
export const CODE_FAILURES_PER_DAY = 50;
export const CODE_FAILURES_WINDOW_MS = DAY_MS;

/** Wrong MFA codes of one user before further ones are refused: a ticket's attempts alone would allow guessing on. */
export const MFA_FAILURES = { requests: 20, window: (15 * MINUTE_MS) / SECOND_MS };
/** Mails to one address, from all clients together. */
export const MAILS_PER_ADDRESS = { requests: 30, window: (10 * MINUTE_MS) / SECOND_MS };
/** Changes of the address that one user may ask for: each is a mail to somebody who did not ask for it. */
export const ADDRESS_CHANGES_PER_USER = { requests: 5, window: (10 * MINUTE_MS) / SECOND_MS };
/** `rateLimits.signin` counts failures per email; per address it allows this many times more. */
export const SIGN_IN_ADDRESS_FACTOR = 3;
/** Guesses that wait for earlier ones of the same key to be judged. */
export const GUESSES_WAITING_MAX = 1_000;

/** Characters of a password or a refresh token in a request: longer ones cannot be right. */
export const SECRET_TEXT_MAX_CHARACTERS = 4_096;
/** Characters of a mailed token or code, a ticket or an id in a request. */
export const TOKEN_TEXT_MAX_CHARACTERS = 256;
export const PASSKEY_NAME_MAX_CHARACTERS = 128;

/** Bytes of chance in tokens, tickets, states and verifiers. */
export const SECRET_BYTES = 32;
export const CODE_DIGITS = 6;

/** bcrypt itself reads no more; Bun's would hash longer passwords first, as no other system does. */
export const BCRYPT_MAX_BYTES = 72;
/** Emails, addresses and users whose failed guesses are counted at once. */
export const GUESS_KEYS_MAX = 100_000;

export const SMTP_CONNECTIONS_MAX = 4;
/** Tries of a mail after the first one: about a day, as the delays grow to an hour. A link or code ends them earlier. */
export const MAIL_RETRIES_MAX = 40;
/** Time that one try to send a mail may take. */
export const MAIL_TIMEOUT_SECONDS = 90;
/**
 * A request for a mail to an address is answered no sooner, where mails go to the outbox: longer than one takes to get there, so that
 * the time does not tell who has an account.
 */
export const OUTBOX_ANSWER_MS = 150;
/** Time that an answer waits for its mail to be in the outbox. */
export const OUTBOX_WAIT_MS = SECOND_MS;
/** Characters of the subject, and of text and html together, of a mail that the config's code sends. */
export const MAIL_SUBJECT_MAX_CHARACTERS = 998;
/** Characters of an account's name in a mail. */
export const MAIL_NAME_MAX_CHARACTERS = 60;
/** Mails that try a template, of all administrators together. */
export const TEST_MAILS = { requests: 10, window: HOUR_MS / SECOND_MS };
export const MAIL_CONTENT_MAX_CHARACTERS = 1024 * 1024;
/** Messages kept in the outbox; the oldest are removed. */
export const OUTBOX_FILES_MAX = 1_000;

/** Time that a CAPTCHA provider may take to answer; then the request is 503. */
export const CAPTCHA_TIMEOUT_MS = 5 * SECOND_MS;
export const CAPTCHA_CHECKS_AT_ONCE_MAX = 200;
export const CAPTCHA_TOKEN_MAX_CHARACTERS = 8_192;
export const CAPTCHA_ANSWER_MAX_BYTES = 16_384;

/** Time that an OAuth provider may take to answer. */
export const PROVIDER_TIMEOUT_SECONDS = 10;
/** Bytes of an answer of an OAuth provider: its metadata, its keys, tokens, and what it says of a user. */
export const PROVIDER_ANSWER_MAX_BYTES = 512 * 1024;
/** Bytes of a provider's id of a user; OpenID Connect allows 255. */
export const PROVIDER_SUBJECT_MAX_BYTES = 255;
/** Time for which the metadata of a provider is cached. */
export const PROVIDER_METADATA_TTL_MS = 24 * HOUR_MS;
/** Apple's secret is a token that is made for each call; it takes up to half a year. */
export const APPLE_SECRET_TTL_SECONDS = 300;
/** A code that an app redeems for a session, or to link an identity. */
export const OAUTH_CODE_TTL_MS = MINUTE_MS;
/** A token of a provider is refreshed when it ends within this time. */
export const PROVIDER_TOKEN_MARGIN_MS = MINUTE_MS;
/** Time between two readings of an issuer's keys for tokens with an unknown one, and after a failure. */
export const ISSUER_KEYS_PAUSE_MS = 5 * SECOND_MS;
/** Time between two lines of the log about refused tokens of an issuer. */
export const ISSUER_WARNING_PAUSE_MS = 10 * SECOND_MS;
/** Time for which the keys of an issuer are cached, so that a withdrawn key is trusted no longer. */
export const ISSUER_KEYS_TTL_MS = 10 * MINUTE_MS;
/** Differences between the clock of an issuer and this one. */
export const ISSUER_SKEW_SECONDS = 60;
/** Characters of an ID token that an app sends. */
export const ID_TOKEN_MAX_CHARACTERS = 8 * 1024;

/** Lifetime of a code of the pages, and of a ticket to them. */
export const PAGE_CODE_TTL_MS = MINUTE_MS;
export const PAGE_TICKET_TTL_MS = 30 * SECOND_MS;
/** Time for which the pages remember, in a browser, the address to which a sign-in leads back. */
export const PAGE_VISIT_TTL_MS = 30 * MINUTE_MS;
/** A session of the pages is extended when it has not been used for this time. */
export const PAGE_SESSION_EXTENDED_MS = HOUR_MS;
/** Characters of an address that a sign-in leads back to, and of the cookies that are looked at. */
export const RETURN_TO_MAX_CHARACTERS = 1_024;
export const PAGE_COOKIES_MAX_CHARACTERS = 16_384;
/** Fields of a form of the pages, of which the largest has eight, and of one that a provider of OAuth posts. */
export const SMALL_FORM_FIELDS_MAX = 32;
/** Bytes of a form of the pages, and of a picture. */
export const PAGE_FORM_MAX_BYTES = 64 * 1024;
export const PICTURE_MAX_BYTES = 5 * 1024 * 1024;
