package platform.client.realtime

import platform.client.Outgoing
import platform.client.PlatformException
import platform.client.Transport
import platform.client.asObject
import platform.client.jsonOf
import platform.client.text

/** Time that the server has to answer a message. */
internal const val ANSWER_MS: Long = 15_000

/** Opens connections in the caller's name, and keeps their tokens fresh. */
internal class Login(private val transport: Transport) {
    /** WebSocket that has authenticated. [userId] is null for nobody and for a service key. */
    class Opened(val socket: Socket, val userId: String?, val token: String?)

    /** Connects and authenticates. [check] is called when the caller is known. Errors: [PlatformException], 401 among them; [Closed]. */
    suspend fun open(path: String, check: () -> Unit): Opened {
        val socket = Socket.open(transport.http, "ws" + transport.base.substring("http".length) + path)
        try {
            for (attempt in 1..2) {
                val token = credentials()
                check()
                val user = transport.userId
                val message = if (token == null) mapOf("type" to "auth", "anonymous" to true) else mapOf("type" to "auth", "token" to token)
                socket.send(jsonOf(message))
                if (isAccepted(socket)) return Opened(socket, user, token)
                if (token == null || !transport.replaceRefused(token) && transport.session.value != null) break
            }
            throw PlatformException(401, "The server refused the access token")
        } catch (problem: Throwable) {
            socket.drop()
            throw problem
        }
    }

    private suspend fun isAccepted(socket: Socket): Boolean {
        while (true) {
            val answer = socket.receive(ANSWER_MS) ?: throw Closed(Socket.LOST)
            when (answer.text("type")) {
                "auth_success" -> return true
                // Rooms refuse by the second one.
                "auth_error", "error" -> return false
            }
        }
    }

    /** Returns an access token, for a service key a ticket that is good once, null for nobody. */
    private suspend fun credentials(): String? {
        if (transport.serviceKey == null) return transport.token()
        return transport.json(Outgoing("POST", "/api/admin/socket-ticket")).asObject().text("ticket")
    }

    /** Replaces the tokens where the server has ended the session: it may have meant the token only. */
    suspend fun lost(end: Closed) {
        val token = transport.session.value?.accessToken
        if (end.code != SESSION_ENDED || token == null) return
        try {
            transport.replaceRefused(token)
        } catch (_: PlatformException) {
            // The next connection tries again.
        }
    }

    private companion object {
        const val SESSION_ENDED = 4003
    }
}
