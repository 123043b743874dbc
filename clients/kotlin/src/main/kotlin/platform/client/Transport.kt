package platform.client

import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Deferred
import kotlinx.coroutines.async
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.suspendCancellableCoroutine
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import okhttp3.Call
import okhttp3.Callback
import okhttp3.MediaType.Companion.toMediaType
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response
import java.io.IOException
import java.io.InterruptedIOException
import java.util.UUID
import kotlin.coroutines.resume
import kotlin.coroutines.resumeWithException

/**
 * Request to be sent.
 *
 * @property isIdempotent Whether it carries an `Idempotency-Key` where the caller has credentials, and is tried again then.
 * @property isRetried Whether it is tried again in any case, as every GET is.
 * @property hasCaller Whether it carries the caller's credentials.
 */
internal class Outgoing(
    val method: String,
    val path: String,
    val params: Map<String, Any?> = emptyMap(),
    val body: Body? = null,
    val isIdempotent: Boolean = false,
    val isRetried: Boolean = false,
    val hasCaller: Boolean = true,
)

internal fun jsonBody(value: Any?): Body = Body("application/json", bytesOf(jsonOf(value)))

/** Sends requests as the signed-in user, with a service key, or as nobody. */
internal class Transport(
    val base: String,
    val serviceKey: String?,
    val http: OkHttpClient,
    private val storage: SessionStorage,
    private val scope: CoroutineScope,
) {
    val session = MutableStateFlow<Session?>(null)
    private val lock = Mutex()
    private var isLoaded = false
    private var refreshing: Deferred<Unit>? = null

    val userId: String? get() = session.value?.user?.id

    /** Sends a request and returns the JSON of its answer, `JsonNull` for an empty one. Errors: [PlatformException]. */
    suspend fun json(request: Outgoing): JsonElement = send(request) { parsed(it.bytes()) ?: JsonNull }

    /** Sends a request and returns what [read] makes of its answer, in a thread that may wait. */
    suspend fun <T> send(request: Outgoing, read: (Response) -> T): T {
        restore()
        val hasCredentials = serviceKey != null || session.value != null
        val key = if (request.isIdempotent && hasCredentials) UUID.randomUUID().toString() else null
        val isRetried = request.isRetried || request.method == "GET" || key != null
        val headers = if (key == null) emptyMap() else mapOf("Idempotency-Key" to key)
        val user = userId
        var attempt = 0
        while (true) {
            try {
                return asCaller(request, headers, user, read)
            } catch (error: PlatformException) {
                val wait = if (isRetried) waitBefore(attempt, error) else null
                delay(wait ?: throw error)
                attempt++
            }
        }
    }

    /** Sends a request once, and once more where its token was refused and there is another one. */
    private suspend fun <T> asCaller(request: Outgoing, headers: Map<String, String>, user: String?, read: (Response) -> T): T {
        if (!request.hasCaller) return once(request, headers, read)
        if (serviceKey != null) return once(request, headers + ("X-Platform-Service-Key" to serviceKey), read)
        val token = token()
        if (userId != user) throw PlatformException(401, "Another user has signed in, or nobody is signed in any more")
        if (token == null) return once(request, headers, read)
        try {
            return once(request, headers + bearer(token), read)
        } catch (error: PlatformException) {
            if (error.status != 401 || !replaceRefused(token) || userId != user) throw error
            val fresh = session.value?.accessToken ?: throw error
            return once(request, headers + bearer(fresh), read)
        }
    }

    private fun bearer(token: String) = "Authorization" to "Bearer $token"

    private suspend fun <T> once(request: Outgoing, headers: Map<String, String>, read: (Response) -> T): T {
        val url = base + request.path + queryOf(request.params)
        val builder = Request.Builder().url(url)
        for ((name, value) in headers) builder.header(name, value)
        val body = request.body?.let { it.bytes.toRequestBody(it.contentType.toMediaType()) }
        builder.method(request.method, body ?: if (request.method in NEED_BODY) ByteArray(0).toRequestBody() else null)
        val call = http.newCall(builder.build())
        return suspendCancellableCoroutine { waiting ->
            waiting.invokeOnCancellation { call.cancel() }
            call.enqueue(object : Callback {
                override fun onFailure(call: Call, e: IOException) = waiting.resumeWithException(lost(url, e))

                override fun onResponse(call: Call, response: Response) {
                    val outcome = try {
                        Result.success(response.use { taken(it, read) })
                    } catch (problem: IOException) {
                        Result.failure(lost(url, problem))
                    } catch (problem: Exception) {
                        Result.failure(problem)
                    }
                    outcome.fold({ waiting.resume(it) { _, _, _ -> } }, { waiting.resumeWithException(it) })
                }
            })
        }
    }

    private fun <T> taken(response: Response, read: (Response) -> T): T {
        if (response.code >= 300) throw errorOf(response.code, response.bytes()) { response.header(it) }
        return read(response)
    }

    private fun lost(url: String, problem: IOException): PlatformException =
        if (problem is InterruptedIOException) PlatformException(0, "$url did not answer in time", code = "timeout", cause = problem)
        else networkError("Cannot reach $url: ${problem.message}", problem)

    /** Takes the session that the storage has from the run before, at the first use. */
    suspend fun restore(): Session? {
        if (!isLoaded && serviceKey == null) {
            lock.withLock {
                if (!isLoaded) {
                    session.value = storage.load()?.let(::stored)
                    isLoaded = true
                }
            }
        }
        return session.value
    }

    private fun stored(text: String): Session? = try {
        val found = json.decodeFromString(StoredSession.serializer(), text)
        // Its age is not known: it is replaced before its first use.
        if (found.base == base) Session(found.user, found.accessToken, found.refreshToken, now(), 0) else null
    } catch (_: SerializationException) {
        null
    }

    /** Begins a session. */
    suspend fun adopt(answer: JsonElement): User {
        val next = sessionOf(answer)
        lock.withLock {
            isLoaded = true
            session.value = next
            keep(next)
        }
        return next.user
    }

    /** Ends the session here, and returns it. */
    suspend fun forget(): Session? {
        restore()
        return lock.withLock {
            session.value.also {
                session.value = null
                storage.clear()
            }
        }
    }

    private fun sessionOf(answer: JsonElement): Session {
        val tokens = try {
            json.decodeFromJsonElement(Tokens.serializer(), answer)
        } catch (problem: SerializationException) {
            throw PlatformException(500, "The server's answer has no tokens", cause = problem)
        }
        return Session(tokens.user, tokens.accessToken, tokens.refreshToken, now(), lifetimeOf(tokens.accessToken))
    }

    private suspend fun keep(kept: Session) {
        val stored = StoredSession(base, kept.user, kept.accessToken, kept.refreshToken)
        storage.save(json.encodeToString(StoredSession.serializer(), stored))
    }

    /** Returns an access token that is good, null without a user. A refresh that fails leaves the present one while it is good. */
    suspend fun token(): String? {
        val present = restore() ?: return null
        if (!present.isDue(now())) return present.accessToken
        try {
            refresh(present)
        } catch (error: PlatformException) {
            if (present !== session.value || !present.isGood(now())) throw error
        }
        return session.value?.accessToken
    }

    /** Replaces an access token that the server has refused. Returns whether there is another one. */
    suspend fun replaceRefused(token: String): Boolean {
        val present = session.value
        if (present != null && present.accessToken == token) refresh(present)
        return session.value.let { it != null && it.accessToken != token }
    }

    /**
     * Replaces the tokens, once for all that wait. It goes on when the one that began it is cancelled: an answer that nobody took would
     * end the session half a minute later.
     */
    private suspend fun refresh(stale: Session) {
        val work = lock.withLock {
            if (session.value !== stale) CompletableDeferred(Unit)
            else refreshing?.takeIf { it.isActive } ?: scope.async { refreshNow(stale) }.also { refreshing = it }
        }
        work.await()
    }

    private suspend fun refreshNow(stale: Session) {
        val body = jsonBody(mapOf("refreshToken" to stale.refreshToken))
        val request = Outgoing("POST", "/api/auth/refresh", body = body)
        var attempt = 0
        while (true) {
            try {
                val answer = once(request, emptyMap()) { parsed(it.bytes()) ?: JsonNull }
                val next = sessionOf(answer)
                lock.withLock { if (session.value === stale) replace(next) }
                return
            } catch (error: PlatformException) {
                if (error.status in ENDED) {
                    lock.withLock { if (session.value === stale) end() }
                    return
                }
                // A replaced refresh token gives the same tokens again for 30 s, so a lost answer loses nothing.
                delay(waitBefore(attempt, error) ?: throw error)
                attempt++
            }
        }
    }

    /** Goes on with fresh tokens even where they cannot be saved: the user stays signed in until the program ends. */
    private suspend fun replace(next: Session) {
        session.value = next
        try {
            keep(next)
        } catch (_: IOException) {
        }
    }

    private suspend fun end() {
        session.value = null
        try {
            storage.clear()
        } catch (_: IOException) {
        }
    }

    private companion object {
        val NEED_BODY = setOf("POST", "PUT", "PATCH")
        val ENDED = setOf(400, 401, 403)
    }
}

internal fun now(): Long = System.nanoTime() / 1_000_000

/** Answers of calls have a body, at least an empty one. */
internal fun Response.bytes(): ByteArray = body!!.bytes()
