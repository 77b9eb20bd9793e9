// SPDX-License-Identifier: BSD-3-Clause
// Passing descriptors between two processes and into another PID namespace, and all letters that
// must be refused.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

#include "sys/sys.hpp"
#include "unit/sys_support.hpp"

using namespace stretto::sys;

namespace {

std::uint64_t fresh_id() {
  std::uint64_t id = 0;
  EXPECT_EQ(random_bytes(&id, sizeof id), 0);
  return id;
}

ino_t inode(int fd) {
  struct stat status{};
  return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

// Receives a letter, for which the sender has up to five seconds.
int receive_soon(const Mailbox& box, std::uint64_t* from, int* fd) {
  int error = EAGAIN;
  for (int i = 0; i < 5000 && error == EAGAIN; ++i) {
    error = mailbox_receive(box, from, fd);
    if (error == EAGAIN) nap_ns(1'000'000);
  }
  return error;
}

struct SysMailbox : testing::Test {
  std::uint64_t id = fresh_id();
  Mailbox box;
  int memory = -1;
  void SetUp() override {
    ASSERT_EQ(mailbox_open(id, &box), 0);
    ASSERT_EQ(memfd_open("stretto-test", 4096, &memory), 0);
  }
  void TearDown() override {
    mailbox_close(&box);
    EXPECT_EQ(box.socket, -1);
    close_descriptor(memory);
  }
  void expect_empty() {
    std::uint64_t from = 42;
    int fd = 42;
    EXPECT_EQ(mailbox_receive(box, &from, &fd), EAGAIN);
    EXPECT_EQ(from, 42u);
    EXPECT_EQ(fd, 42);
  }
};

// Sends `to` a forged message: `bytes` bytes of text and `descriptors` copies of `fd`.
bool send_raw(std::uint64_t to, const void* text, std::size_t bytes, int fd, int descriptors) {
  const int raw = socket(AF_UNIX, SOCK_DGRAM, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const int length = std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "stretto-%016llx",
                                   static_cast<unsigned long long>(to));
  iovec part{const_cast<void*>(text), bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
  msghdr message{};
  message.msg_name = &name;
  message.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptors > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
    for (int i = 0; i < descriptors; ++i) std::memcpy(CMSG_DATA(header) + i * sizeof fd, &fd, sizeof fd);
  }
  const bool sent = sendmsg(raw, &message, MSG_DONTWAIT) == static_cast<ssize_t>(bytes);
  close(raw);
  return sent;
}

struct RawLetter {
  std::uint64_t magic = 0x5354524554544f31u;
  std::uint64_t from = 9;
};

TEST_F(SysMailbox, PassesADescriptorBetweenProcesses) {
  const int code = in_child([&] {
    Mailbox own;
    int file = -1;
    void* address = nullptr;
    if (mailbox_open(id + 1, &own) != 0 || memfd_open("stretto-child", 8192, &file) != 0) return 1;
    if (map_shared(file, 8192, Access::read_write, &address) != 0) return 2;
    std::strcpy(static_cast<char*>(address), "from the child");
    return mailbox_send(own, id, id + 1, file);
  });
  ASSERT_EQ(code, 0);
  std::uint64_t from = 0;
  int fd = -1;
  ASSERT_EQ(receive_soon(box, &from, &fd), 0);
  EXPECT_EQ(from, id + 1);
  EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  void* address = nullptr;
  ASSERT_EQ(map_shared(fd, 8192, Access::read_only, &address), 0);
  EXPECT_STREQ(static_cast<char*>(address), "from the child");  // after the child has gone
  unmap(address, 8192);
  close_descriptor(fd);
}

TEST_F(SysMailbox, ReachesIntoAnotherPidNamespace) {
  const int code = in_child([&] {
    if (unshare(CLONE_NEWPID) != 0) return 99;
    return in_child([&] {
      Mailbox own;
      if (process_id() != 1 || mailbox_open(id + 1, &own) != 0) return 1;
      return mailbox_send(own, id, id + 1, memory);
    });
  });
  if (code == 99) GTEST_SKIP() << "no right to make a PID namespace";
  ASSERT_EQ(code, 0);
  std::uint64_t from = 0;
  int fd = -1;
  ASSERT_EQ(receive_soon(box, &from, &fd), 0);
  EXPECT_EQ(inode(fd), inode(memory));
  close_descriptor(fd);
}

TEST_F(SysMailbox, OpensAPeersFileByProc) {
  int ready[2];
  int leave[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(leave), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(leave[1]);
    int file = -1;
    void* address = nullptr;
    if (memfd_open("stretto-child", 4096, &file) != 0) _exit(1);
    if (map_shared(file, 4096, Access::read_write, &address) != 0) _exit(2);
    std::strcpy(static_cast<char*>(address), "by proc");
    char byte = 0;
    if (write(ready[1], &file, sizeof file) < 0 || read(leave[0], &byte, 1) < 0) _exit(3);
    _exit(0);
  }
  close(leave[0]);
  int number = -1;
  ASSERT_EQ(read(ready[0], &number, sizeof number), static_cast<ssize_t>(sizeof number));
  int fd = -1;
  ASSERT_EQ(peer_descriptor_open(child, number, &fd), 0);
  void* address = nullptr;
  ASSERT_EQ(map_shared(fd, 4096, Access::read_only, &address), 0);
  EXPECT_STREQ(static_cast<char*>(address), "by proc");
  unmap(address, 4096);
  close_descriptor(fd);
  close(leave[1]);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NE(peer_descriptor_open(child, number, &fd), 0);  // the peer has gone
  close(ready[0]);
  close(ready[1]);
}

TEST_F(SysMailbox, FullQueueIsEagainUntilReceived) {
  Mailbox sender;
  ASSERT_EQ(mailbox_open(id + 1, &sender), 0);
  int sent = 0;
  int error = 0;
  while (sent < 100000 && (error = mailbox_send(sender, id, static_cast<std::uint64_t>(sent), memory)) == 0) ++sent;
  EXPECT_EQ(error, EAGAIN);
  ASSERT_GT(sent, 0);
  for (int i = 0; i < sent; ++i) {
    std::uint64_t from = 0;
    int fd = -1;
    ASSERT_EQ(mailbox_receive(box, &from, &fd), 0);
    EXPECT_EQ(from, static_cast<std::uint64_t>(i));  // in order
    close_descriptor(fd);
  }
  expect_empty();
  EXPECT_EQ(mailbox_send(sender, id, 1, memory), 0);
  mailbox_close(&sender);
}

TEST_F(SysMailbox, NobodyThereAndNameTaken) {
  EXPECT_EQ(mailbox_send(box, id + 12345, id, memory), ECONNREFUSED);
  Mailbox second;
  EXPECT_EQ(mailbox_open(id, &second), EADDRINUSE);
  EXPECT_EQ(second.socket, -1);
}

TEST_F(SysMailbox, NameIsFreeAgainAfterClose) {
  mailbox_close(&box);
  EXPECT_EQ(mailbox_open(id, &box), 0);
}

TEST_F(SysMailbox, DropsOtherUsersAndClosesTheirDescriptors) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  const int before = open_descriptors();
  const int code = in_child([&] {
    Mailbox own;
    if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0) return 1;
    if (mailbox_open(id + 1, &own) != 0) return 2;
    return mailbox_send(own, id, id + 1, memory);
  });
  ASSERT_EQ(code, 0);
  expect_empty();
  EXPECT_EQ(open_descriptors(), before);
  // A good letter behind a bad one still arrives.
  ASSERT_EQ(in_child([&] {
              if (setresuid(65534, 65534, 65534) != 0) return 1;
              const RawLetter letter;
              return send_raw(id, &letter, sizeof letter, memory, 1) ? 0 : 2;
            }),
            0);
  ASSERT_EQ(mailbox_send(box, id, 5, memory), 0);
  std::uint64_t from = 0;
  int fd = -1;
  ASSERT_EQ(mailbox_receive(box, &from, &fd), 0);
  EXPECT_EQ(from, 5u);
  close_descriptor(fd);
}

TEST_F(SysMailbox, AcceptsTheLetterThatTheTestFakes) {
  const RawLetter letter;
  ASSERT_TRUE(send_raw(id, &letter, sizeof letter, memory, 1));
  std::uint64_t from = 0;
  int fd = -1;
  ASSERT_EQ(mailbox_receive(box, &from, &fd), 0);
  EXPECT_EQ(from, letter.from);
  EXPECT_EQ(inode(fd), inode(memory));
  close_descriptor(fd);
}

TEST_F(SysMailbox, DropsMalformedLettersAndClosesTheirDescriptors) {
  const int before = open_descriptors();
  const RawLetter good;
  const RawLetter alien{1, 9};
  const char longer[sizeof good + 1] = {};
  ASSERT_TRUE(send_raw(id, &good, sizeof good, memory, 0));      // nothing enclosed
  ASSERT_TRUE(send_raw(id, &good, sizeof good, memory, 2));      // the padding holds two
  ASSERT_TRUE(send_raw(id, &good, sizeof good, memory, 5));      // cut by the kernel
  ASSERT_TRUE(send_raw(id, &good, sizeof good - 1, memory, 1));  // too short
  ASSERT_TRUE(send_raw(id, longer, sizeof longer, memory, 1));   // too long
  ASSERT_TRUE(send_raw(id, &alien, sizeof alien, memory, 1));    // no letter of Stretto's
  expect_empty();
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(SysMailbox, NoDescriptorNumberLeftIsEmfile) {
  EXPECT_EQ(in_child([&] {
              if (mailbox_send(box, id, 7, memory) != 0) return 1;
              const rlimit none{static_cast<rlim_t>(memory) + 1, 1024};
              setrlimit(RLIMIT_NOFILE, &none);
              std::uint64_t from = 0;
              int fd = -1;
              while (dup(memory) >= 0) {
              }
              return mailbox_receive(box, &from, &fd) == EMFILE && fd == -1 ? 0 : 2;
            }),
            0);
}

}  // namespace
