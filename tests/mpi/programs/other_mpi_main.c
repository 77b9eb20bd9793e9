/* SPDX-License-Identifier: BSD-3-Clause
 * The main program for a user that is a library.
 */
int user(void);
int main(void) { return user(); }
