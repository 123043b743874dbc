package platform.client.realtime

import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.channels.trySendBlocking
import kotlinx.coroutines.selects.onTimeout
import kotlinx.coroutines.selects.select
import kotlinx.coroutines.suspendCancellableCoroutine
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.Response
import okhttp3.WebSocket
import okhttp3.WebSocketListener
import platform.client.PlatformException
import platform.client.json
import platform.client.networkError
import kotlin.coroutines.resume
import kotlin.coroutines.resumeWithException

/** End of a WebSocket, with its close code. */
internal class Closed(val code: Int) : Exception("The connection was closed with $code")

/** WebSocket whose messages are JSON objects. */
internal class Socket private constructor() {
    private lateinit var socket: WebSocket

    /** Messages that nobody has taken yet. When it is full, the thread of the connection waits, and so does the server. */
    private val arrived = Channel<String>(64)

    private fun end(code: Int) {
        arrived.close(Closed(code))
        socket.cancel()
    }

    private fun onMessage(webSocket: WebSocket, text: String) {
        arrived.trySendBlocking(text)
    }

    private fun onClosing(webSocket: WebSocket, code: Int, reason: String) {
        arrived.close(Closed(code))
        webSocket.close(NORMAL, null)
    }

    private fun onFailure(webSocket: WebSocket, t: Throwable, response: Response?) {
        arrived.close(Closed(LOST))
    }

    /** Returns the next message, null if there is none in time. Errors: [Closed]. */
    @OptIn(ExperimentalCoroutinesApi::class)
    suspend fun receive(timeoutMs: Long): JsonObject? {
        val text = select<String?> {
            arrived.onReceive { it }
            onTimeout(timeoutMs) { null }
        } ?: return null
        return try {
            json.parseToJsonElement(text) as? JsonObject
        } catch (_: SerializationException) {
            null
        } ?: JsonObject(emptyMap())
    }

    /** Sends a message. Errors: [Closed]. */
    fun send(message: JsonElement) {
        if (!socket.send(message.toString())) throw Closed(LOST)
    }

    /** Closes the connection; one that is silent is dropped. */
    fun close() {
        socket.close(NORMAL, null)
        arrived.close(Closed(NORMAL))
    }

    /** Ends a connection that is lost. */
    fun drop(): Unit = end(LOST)

    companion object {
        private const val NORMAL = 1000
        const val LOST = 1006

        /** Connects. Errors: [PlatformException], without a status where the server cannot be reached. */
        suspend fun open(http: OkHttpClient, url: String): Socket = suspendCancellableCoroutine { waiting ->
            val made = Socket()
            val opening = object : WebSocketListener() {
                override fun onOpen(webSocket: WebSocket, response: Response) = waiting.resume(made) { _, _, _ -> made.drop() }
                override fun onMessage(webSocket: WebSocket, text: String) = made.onMessage(webSocket, text)
                override fun onClosing(webSocket: WebSocket, code: Int, reason: String) = made.onClosing(webSocket, code, reason)
                override fun onFailure(webSocket: WebSocket, t: Throwable, response: Response?) {
                    made.onFailure(webSocket, t, response)
                    if (waiting.isActive) waiting.resumeWithException(refusal(url, t, response))
                }
            }
            made.socket = http.newWebSocket(Request.Builder().url(url).build(), opening)
            waiting.invokeOnCancellation { made.drop() }
        }

        private fun refusal(url: String, problem: Throwable, response: Response?): PlatformException =
            if (response == null) networkError("Cannot reach $url: ${problem.message}", problem)
            else PlatformException(response.code, "The server refused the connection with ${response.code}")
    }
}
