package platform.client

import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.longOrNull
import java.io.ByteArrayOutputStream
import java.util.UUID
import kotlin.io.encoding.Base64
import kotlin.random.Random

// The pure part of the protocol: addresses, forms, retries and lifetimes of tokens.

/** Time that the server has for an answer; it ends its own longest queries after 30 s. */
internal const val TIMEOUT_MS: Long = 40_000
internal const val CONNECT_TIMEOUT_MS: Long = 15_000
private const val RETRIES_MAX = 3
private const val RETRY_BACKOFF_MS = 300.0
private const val RETRY_AFTER_MAX_SECONDS = 20.0
private const val RECONNECT_FIRST_MS = 400.0
private const val RECONNECT_MAX_MS = 15_000.0

/** Returns an address without a slash at its end. Errors: `IllegalArgumentException` for one without http or https. */
internal fun baseOf(url: String): String {
    require(Regex("^https?://[^/?#]+[^?#]*$", RegexOption.IGNORE_CASE).matches(url)) {
        "The url must begin with http:// or https://, got \"$url\""
    }
    return url.trimEnd('/')
}

/** Returns a path of encoded segments. Errors: 404 for one that is empty, `.` or `..`, which would lead elsewhere. */
internal fun pathOf(vararg segments: String): String = segments.joinToString("") { segment ->
    if (segment == "" || segment == "." || segment == "..") throw notFound(segment)
    "/" + encoded(segment)
}

/** Returns the path of a file's key, whose slashes stay. */
internal fun keyPathOf(key: String): String = pathOf(*key.split("/").toTypedArray())

/** Returns a query of the parameters that are set, with its question mark; nothing where there are none. */
internal fun queryOf(params: Map<String, Any?>): String {
    val set = params.filterValues { it != null }
    return if (set.isEmpty()) "" else set.entries.joinToString("&", "?") { (name, value) -> "${encoded(name)}=${encoded(value.toString())}" }
}

private fun encoded(text: String): String = buildString {
    for (byte in text.toByteArray()) {
        val code = byte.toInt() and 255
        val char = code.toChar()
        if (char in 'a'..'z' || char in 'A'..'Z' || char in '0'..'9' || char in "-._~") append(char)
        else append('%').append("0123456789ABCDEF"[code shr 4]).append("0123456789ABCDEF"[code and 15])
    }
}

/** Body of a request, the same bytes in each try. */
internal class Body(val contentType: String, val bytes: ByteArray)

/** Part of a form. [fileName] is null for a text. */
internal class Part(val name: String, val fileName: String?, val contentType: String, val content: ByteArray)

internal fun formOf(parts: List<Part>): Body {
    val boundary = UUID.randomUUID().toString()
    val body = ByteArrayOutputStream()
    for (part in parts) {
        val named = part.fileName?.let { "; filename=\"${quoted(it)}\"" }.orEmpty()
        val head = "Content-Disposition: form-data; name=\"${quoted(part.name)}\"$named\r\nContent-Type: ${part.contentType}"
        body.write("--$boundary\r\n$head\r\n\r\n".toByteArray())
        body.write(part.content)
        body.write("\r\n".toByteArray())
    }
    body.write("--$boundary--\r\n".toByteArray())
    return Body("multipart/form-data; boundary=$boundary", body.toByteArray())
}

private fun quoted(text: String): String =
    text.replace("\r", "%0D").replace("\n", "%0A").replace("\\", "\\\\").replace("\"", "\\\"")

/** Returns the milliseconds before the next try of a request, null where there is none. */
internal fun waitBefore(attempt: Int, error: PlatformException): Long? {
    val isPassing = error.isPassing && error.code != "timeout"
    val isUnderWay = error.fields.values.any { it.code == "idempotency_in_progress" }
    val asked = error.retryAfterSeconds ?: 0.0
    if (!(isPassing || isUnderWay) || attempt >= RETRIES_MAX || asked > RETRY_AFTER_MAX_SECONDS) return null
    return (asked * 1000).toLong() + jittered(RETRY_BACKOFF_MS * (1 shl attempt))
}

/** Returns the milliseconds before the next connection, after so many failures in a row. */
internal fun reconnectWait(failures: Int): Long =
    jittered(minOf(RECONNECT_MAX_MS, RECONNECT_FIRST_MS * (1 shl minOf(failures, 10))))

/** Returns a time around this one, so that clients do not come back together. */
private fun jittered(milliseconds: Double): Long = (milliseconds * Random.nextDouble(0.7, 1.3)).toLong()

/** Returns the lifetime that an access token states, in seconds; 0 for an unreadable one, which is then replaced at each use. */
internal fun lifetimeOf(accessToken: String): Long {
    val payload = accessToken.split(".").getOrNull(1) ?: return 0
    val claims = try {
        parsed(Base64.UrlSafe.withPadding(Base64.PaddingOption.PRESENT_OPTIONAL).decode(payload)) as? JsonObject
    } catch (_: IllegalArgumentException) {
        null
    }
    val (from, to) = listOf("iat", "exp").map { (claims?.get(it) as? JsonPrimitive)?.longOrNull ?: return 0 }
    return to - from
}
