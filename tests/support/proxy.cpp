// The counting and cutting proxy.
// Called by the round trip and fault tests.
#include "proxy.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        throw std::runtime_error("socket path too long: " + path);
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

bool send_all(int socket, const char* bytes, std::size_t size) {
    while (size > 0) {
        const ssize_t sent = send(socket, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        bytes += sent;
        size -= static_cast<std::size_t>(sent);
    }
    return true;
}

/// Finds the ends of messages in a stream: a type byte (but for the client's first message) and a length that counts itself.
class Messages {
public:
    explicit Messages(bool first_is_untyped) : untyped_(first_is_untyped) {}

    /// Takes a chunk; gives the sizes of the complete messages that can be forwarded now, and keeps the rest.
    std::vector<std::string> take(const char* bytes, std::size_t size) {
        buffer_.append(bytes, size);
        std::vector<std::string> complete;
        for (;;) {
            const std::size_t header = untyped_ ? 4 : 5;
            if (buffer_.size() < header) {
                return complete;
            }
            const auto* const length = reinterpret_cast<const unsigned char*>(buffer_.data()) + header - 4;
            const std::size_t total =
                header - 4 + (static_cast<std::size_t>(length[0]) << 24 | length[1] << 16 | length[2] << 8 | length[3]);
            if (buffer_.size() < total) {
                return complete;
            }
            complete.push_back(buffer_.substr(0, total));
            buffer_.erase(0, total);
            untyped_ = false;
        }
    }

    /// Whole messages have gone by unread.
    void pass_whole() { untyped_ = false; }

private:
    std::string buffer_;
    bool untyped_;
};

std::string host_of(const std::string& conninfo) {
    const std::size_t begin = conninfo.find("host=") + 5;
    return conninfo.substr(begin, conninfo.find(' ', begin) - begin);
}

}  // namespace

Proxy::Proxy(const std::string& conninfo) {
    std::string name = (std::filesystem::temp_directory_path() / "proxy.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
        throw std::runtime_error("no temporary folder");
    }
    folder_ = name;
    const std::string host = host_of(conninfo);
    server_socket_ = host + "/.s.PGSQL.5432";
    conninfo_ = conninfo;
    conninfo_.replace(conninfo_.find(host), host.size(), name);
    listening_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un address = address_of(name + "/.s.PGSQL.5432");
    if (bind(listening_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listening_, 64) != 0) {
        throw std::runtime_error("the proxy cannot listen");
    }
    acceptor_ = std::thread([this] { accept_connections(); });
}

Proxy::~Proxy() {
    ending_ = true;
    shutdown(listening_, SHUT_RDWR);
    acceptor_.join();
    for (int serving = serving_; serving > 0; serving = serving_) {
        serving_.wait(serving);
    }
    close(listening_);
    std::filesystem::remove_all(folder_);
}

void Proxy::cut_at(Direction direction, int message) {
    cut_ = false;
    (direction == Direction::to_server ? to_server_left_ : to_client_left_) = message;
}

void Proxy::accept_connections() {
    while (!ending_) {
        const int client = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
        if (client < 0) {
            return;
        }
        ++serving_;
        std::thread([this, client] {
            serve(client);
            close(client);
            --serving_;
            serving_.notify_all();
        }).detach();
    }
}

void Proxy::serve(int client) {
    const int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un address = address_of(server_socket_);
    if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        close(server);
        return;
    }
    Messages from_client(true);
    Messages from_server(false);
    bool client_spoke_last = false;
    std::array<char, 65536> chunk{};
    const auto forward = [&](int from, int to, Messages& messages, std::atomic<int>& left) {
        const ssize_t size = recv(from, chunk.data(), chunk.size(), 0);
        if (size <= 0) {
            return false;
        }
        if (left == 0) {
            messages.pass_whole();
            return send_all(to, chunk.data(), static_cast<std::size_t>(size));
        }
        std::string whole;  // sent at once, as it came
        for (const std::string& message : messages.take(chunk.data(), static_cast<std::size_t>(size))) {
            if (left > 0 && --left == 0) {
                cut_ = true;
                send_all(to, whole.data(), whole.size());
                return false;
            }
            whole += message;
        }
        return send_all(to, whole.data(), whole.size());
    };
    for (bool open = true; open && !ending_;) {
        std::array<pollfd, 2> ends{pollfd{client, POLLIN, 0}, pollfd{server, POLLIN, 0}};
        if (poll(ends.data(), ends.size(), 100) <= 0) {
            continue;
        }
        // The client first: what it sent before the server's answer belongs to the same turn.
        if (ends[0].revents != 0) {
            client_spoke_last = true;
            open = forward(client, server, from_client, to_server_left_);
        } else if (ends[1].revents != 0) {
            if (std::exchange(client_spoke_last, false)) {
                ++round_trips_;
                if (const std::chrono::microseconds delay{delay_}; delay.count() > 0) {
                    std::this_thread::sleep_for(delay);
                }
            }
            open = forward(server, client, from_server, to_client_left_);
        }
    }
    close(server);
}
