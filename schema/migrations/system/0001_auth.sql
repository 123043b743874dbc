-- Who may come in: accounts, their sessions, and every way of proving who one is. Times are milliseconds since 1970.

CREATE TABLE users (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, -- order of creation, and the cursor of lists
  id TEXT NOT NULL UNIQUE,
  email TEXT UNIQUE, -- trimmed and lower-cased; NULL for anonymous users
  emailVerified INTEGER NOT NULL DEFAULT 0,
  emailVisibility TEXT NOT NULL DEFAULT 'private',
  passwordHash TEXT, -- argon2id; imported ones bcrypt or pbkdf2 until the next sign-in
  displayName TEXT,
  avatarUrl TEXT,
  role TEXT NOT NULL DEFAULT 'user',
  isAnonymous INTEGER NOT NULL DEFAULT 0,
  disabled INTEGER NOT NULL DEFAULT 0,
  metadata TEXT NOT NULL DEFAULT '{}',
  appMetadata TEXT NOT NULL DEFAULT '{}',
  customClaims TEXT NOT NULL DEFAULT '{}',
  createdAt INTEGER NOT NULL,
  updatedAt INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
  id TEXT PRIMARY KEY NOT NULL,
  userId TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  createdAt INTEGER NOT NULL,
  lastUsedAt INTEGER NOT NULL,
  expiresAt INTEGER NOT NULL,
  ip TEXT,
  userAgent TEXT,
  generation INTEGER NOT NULL DEFAULT 0, -- of the refresh token that counts
  rotations TEXT NOT NULL DEFAULT '[]' -- when the last generations were replaced, newest first
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_userId ON sessions (userId, createdAt);
CREATE INDEX sessions_expiresAt ON sessions (expiresAt);

-- Tokens and codes that are good once: those in mail, MFA tickets, OAuth states, WebAuthn challenges.
CREATE TABLE one_time_secrets (
  hash BLOB PRIMARY KEY NOT NULL, -- keyed hash of what was handed out; of the address for codes typed by hand
  purpose TEXT NOT NULL,
  userId TEXT REFERENCES users (id) ON DELETE CASCADE,
  payload TEXT NOT NULL DEFAULT '{}',
  attempts INTEGER NOT NULL DEFAULT 0,
  expiresAt INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX one_time_secrets_expiresAt ON one_time_secrets (expiresAt);
CREATE INDEX one_time_secrets_userId ON one_time_secrets (userId, purpose);

CREATE TABLE mfa_factors (
  id TEXT PRIMARY KEY NOT NULL,
  userId TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  type TEXT NOT NULL,
  secret TEXT NOT NULL, -- encrypted with a key derived from the token secret
  verified INTEGER NOT NULL DEFAULT 0,
  usedSteps TEXT NOT NULL DEFAULT '[]', -- time steps whose codes have been used, as long as they could be used again
  createdAt INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX mfa_factors_userId ON mfa_factors (userId);

CREATE TABLE mfa_recovery_codes (
  hash BLOB NOT NULL,
  userId TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  factorId TEXT NOT NULL REFERENCES mfa_factors (id) ON DELETE CASCADE,
  PRIMARY KEY (userId, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX mfa_recovery_codes_factorId ON mfa_recovery_codes (factorId);

CREATE TABLE identities (
  id TEXT PRIMARY KEY NOT NULL,
  userId TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  provider TEXT NOT NULL,
  subject TEXT NOT NULL,
  email TEXT,
  createdAt INTEGER NOT NULL,
  lastSignInAt INTEGER NOT NULL,
  UNIQUE (provider, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX identities_userId ON identities (userId);

CREATE TABLE passkeys (
  id TEXT PRIMARY KEY NOT NULL, -- the credential id, base64url
  userId TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  publicKey BLOB NOT NULL,
  counter INTEGER NOT NULL DEFAULT 0,
  transports TEXT NOT NULL DEFAULT '[]',
  deviceType TEXT NOT NULL,
  backedUp INTEGER NOT NULL DEFAULT 0,
  name TEXT,
  createdAt INTEGER NOT NULL,
  lastUsedAt INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX passkeys_userId ON passkeys (userId);
