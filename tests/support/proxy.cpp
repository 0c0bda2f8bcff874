// The counting and cutting proxy.
// Called by the round trip and fault tests.
#include "proxy.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

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

/// Finds where messages begin in a stream: a type byte (but for the client's first message) and a length that counts itself.
class Messages {
public:
    explicit Messages(bool first_is_untyped) : header_left_(first_is_untyped ? 4 : 5) {}

    /// Goes over a chunk of the stream.
    /// @param begins is called with the place of each message that begins in it; false ends the walk
    template <typename Begins>
    void walk(const char* bytes, std::size_t size, Begins begins) {
        for (std::size_t at = 0; at < size;) {
            if (between_messages_) {
                if (!begins(at)) {
                    return;
                }
                between_messages_ = false;
            }
            if (header_left_ > 0) {
                // The type byte falls out at the top of the length.
                length_ = length_ << 8 | static_cast<unsigned char>(bytes[at++]);
                if (--header_left_ == 0) {
                    body_left_ = length_ - 4;
                }
            } else {
                const std::size_t passed = std::min<std::size_t>(body_left_, size - at);
                at += passed;
                body_left_ -= static_cast<std::uint32_t>(passed);
            }
            if (header_left_ == 0 && body_left_ == 0) {
                header_left_ = 5;
                between_messages_ = true;
            }
        }
    }

private:
    int header_left_;
    bool between_messages_ = true;
    std::uint32_t length_ = 0;
    std::uint32_t body_left_ = 0;
};

/// Takes one off what is left, unless nothing is. Connections of several threads share it.
/// @return whether this was the last one
bool take_last(std::atomic<int>& left) {
    int now = left;
    while (now > 0 && !left.compare_exchange_weak(now, now - 1)) {}
    return now == 1;
}

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
    lead_to(conninfo);
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

void Proxy::lead_to(const std::string& conninfo) {
    const std::scoped_lock lock(mutex_);
    server_socket_ = host_of(conninfo) + "/.s.PGSQL.5432";
}

std::string Proxy::server_socket() const {
    const std::scoped_lock lock(mutex_);
    return server_socket_;
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
    const sockaddr_un address = address_of(server_socket());
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
        std::size_t kept = static_cast<std::size_t>(size);
        bool cutting = false;
        messages.walk(chunk.data(), kept, [&](std::size_t begin) {
            cutting = take_last(left);
            kept = cutting ? begin : kept;
            return !cutting;
        });
        const bool sent = send_all(to, chunk.data(), kept);
        if (cutting) {
            cut_ = true;
        }
        return sent && !cutting;
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
