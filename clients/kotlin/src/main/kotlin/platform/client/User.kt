package platform.client

import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonObject

/** Signed-in user. */
@Serializable
public data class User(
    public val id: String,
    public val email: String? = null,
    public val displayName: String? = null,
    public val avatarUrl: String? = null,
    public val role: String = "user",
    public val emailVerified: Boolean = false,
    public val isAnonymous: Boolean = false,
    public val createdAt: String = "",
    public val metadata: JsonObject = JsonObject(emptyMap()),
    public val customClaims: JsonObject = JsonObject(emptyMap()),
)

/** Answer of a sign-in or a refresh. */
@Serializable
internal class Tokens(val user: User, val accessToken: String, val refreshToken: String)

/** Session as a storage keeps it. A client of another server leaves it alone. */
@Serializable
internal class StoredSession(@SerialName("url") val base: String, val user: User, val accessToken: String, val refreshToken: String)

/** Tokens of a user. Times count from their arrival on a clock that nobody sets, never from timestamps in the tokens. */
internal class Session(val user: User, val accessToken: String, val refreshToken: String, private val takenAtMs: Long, lifetimeSeconds: Long) {
    private val lifetimeMs = lifetimeSeconds * 1000

    fun isGood(nowMs: Long): Boolean = takenAtMs + lifetimeMs > nowMs

    /** Whether the access token is to be replaced: when less than a minute, or than a fifth of its lifetime, is left. */
    fun isDue(nowMs: Long): Boolean = takenAtMs + lifetimeMs - nowMs <= minOf(60_000, lifetimeMs / 5)
}
