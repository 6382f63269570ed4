/* Does nothing: for a program that is statically linked. */
int main(void) { return 3; }
