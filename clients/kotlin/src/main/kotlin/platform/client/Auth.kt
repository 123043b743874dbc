package platform.client

import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.distinctUntilChanged
import kotlinx.coroutines.flow.map
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.booleanOrNull

/** Session of a client, whose access tokens are replaced by themselves. Errors: [PlatformException]. */
public class Auth internal constructor(private val transport: Transport) {
    /** Signed-in user, or null. A session of an earlier run is here after [restore], or after the first request. */
    public val user: User? get() = transport.session.value?.user

    /** Signed-in user now and after each change. */
    public val users: Flow<User?> = transport.session.map { it?.user }.distinctUntilChanged()

    /** Takes the session that the storage has from an earlier run. Returns its user. */
    public suspend fun restore(): User? = transport.restore()?.user

    /** Makes an account and signs in. Where addresses must be verified first, [user] stays null. Errors: 409 for a known address. */
    public suspend fun signUp(
        email: String,
        password: String,
        displayName: String? = null,
        metadata: Map<String, Any?>? = null,
    ): User {
        val body = mapOf("email" to email, "password" to password, "displayName" to displayName, "metadata" to metadata)
        return begin("/api/auth/signup", body.filterValues { it != null })
    }

    /** Signs in. [code] is that of the second factor. Errors: 401; with the field `code` where it is needed. */
    public suspend fun signIn(email: String, password: String, code: String? = null): User {
        val answer = post("/api/auth/signin", mapOf("email" to email, "password" to password)).asObject()
        if ((answer["mfaRequired"] as? JsonPrimitive)?.booleanOrNull != true) return transport.adopt(answer)
        if (code == null) {
            val problem = "A second factor is required: pass its code"
            throw PlatformException(401, problem, fields = mapOf("code" to FieldProblem("required", problem)))
        }
        return transport.adopt(post("/api/auth/mfa/verify", mapOf("mfaTicket" to answer["mfaTicket"], "code" to code)))
    }

    /** Signs in as a new user without an address. */
    public suspend fun signInAnonymously(): User = begin("/api/auth/signin/anonymous", null)

    /** Ends the session, here at once and then at the server. */
    public suspend fun signOut() {
        val session = transport.forget() ?: return
        try {
            post("/api/auth/signout", mapOf("refreshToken" to session.refreshToken))
        } catch (error: PlatformException) {
            // It has ended already.
            if (error.status !in setOf(400, 401, 403)) throw error
        }
    }

    private suspend fun begin(path: String, body: Any?): User {
        val answer = post(path, body).asObject()
        if ("accessToken" in answer) return transport.adopt(answer)
        return json.decodeFromJsonElement(User.serializer(), answer.getValue("user"))
    }

    private suspend fun post(path: String, body: Any?): JsonElement =
        transport.json(Outgoing("POST", path, body = body?.let(::jsonBody), hasCaller = false))
}

internal fun JsonElement.asObject(): JsonObject =
    this as? JsonObject ?: throw PlatformException(500, "The server's answer is no object")
