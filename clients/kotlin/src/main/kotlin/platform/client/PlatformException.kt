package platform.client

import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.contentOrNull

/** Error of one field. [code] is the server's, such as `required` or `not_unique`. */
public class FieldProblem(public val code: String, public val message: String) {
    override fun toString(): String = "$code: $message"
}

/**
 * Error of a request, the only one that this client throws besides those of cancelled coroutines and of local files.
 *
 * @property status HTTP status; 0 where no answer came.
 * @property code `network`, `timeout`, `unauthenticated`, `forbidden`, `not_found`, `conflict`, `precondition_failed`, `invalid`,
 *   `too_large`, `rate_limited`, `unavailable` or `internal`.
 * @property fields Fields at fault by path, `inserts.1.title` in a batch.
 * @property requestId Name under which the server's log has the cause.
 * @property retryAfterSeconds Seconds that the server asks to wait.
 */
public class PlatformException(
    public val status: Int,
    message: String,
    public val code: String = codeOf(status),
    public val fields: Map<String, FieldProblem> = emptyMap(),
    public val requestId: String? = null,
    public val retryAfterSeconds: Double? = null,
    cause: Throwable? = null,
) : Exception(message, cause) {
    override val message: String get() = super.message.orEmpty()

    override fun toString(): String = "$status $code: $message"

    /** Whether the same request may succeed later: no answer, too many requests, or a server that is about to come back. */
    internal val isPassing: Boolean get() = status in PASSING
}

private val PASSING = setOf(0, 429, 502, 503)

private fun codeOf(status: Int): String = when {
    status == 0 -> "network"
    status == 401 -> "unauthenticated"
    status == 403 -> "forbidden"
    status == 404 -> "not_found"
    status == 408 -> "timeout"
    status == 409 -> "conflict"
    status == 412 -> "precondition_failed"
    status == 413 -> "too_large"
    status == 429 -> "rate_limited"
    status < 500 -> "invalid"
    status < 502 -> "internal"
    else -> "unavailable"
}

internal fun notFound(name: String): PlatformException = PlatformException(404, "There is nothing named \"$name\"")

internal fun networkError(message: String, cause: Throwable? = null): PlatformException =
    PlatformException(0, message, cause = cause)

/** Returns the error of an answer of 300 or more. A foreign body, such as a proxy's page, is left out. */
internal fun errorOf(status: Int, body: ByteArray, header: (String) -> String?): PlatformException {
    val answer = parsed(body) as? JsonObject
    val data = answer?.get("data") as? JsonObject
    val fields = data.orEmpty().entries.mapNotNull { (field, problem) ->
        (problem as? JsonObject)?.let { field to FieldProblem(it.text("code").orEmpty(), it.text("message").orEmpty()) }
    }
    return PlatformException(
        status,
        answer?.text("message") ?: "HTTP $status",
        fields = fields.toMap(),
        requestId = header("X-Request-Id"),
        retryAfterSeconds = header("Retry-After")?.toDoubleOrNull(),
    )
}

internal fun JsonObject.text(name: String): String? = (get(name) as? JsonPrimitive)?.contentOrNull
